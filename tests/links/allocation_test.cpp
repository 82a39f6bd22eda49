// Messages take memory only for what they hand out: buffers stay from one to the next.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include "strait/links/link.h"

namespace {

bool counting = false;
size_t counted = 0;  // bytes

void* allocate(size_t size, size_t alignment) {
  if (counting) counted += size;
  void* memory = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// In place of the library's, for this program. Not inlined: the compiler would see free() called for what new
// gave.
[[gnu::noinline]] void* operator new(size_t size) { return allocate(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new[](size_t size) { return allocate(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t /*size*/) noexcept { free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, size_t /*size*/) noexcept { free(memory); }

// What LibTorch takes for the elements of its tensors.
extern "C" int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  *memory = allocate(size, alignment);
  return 0;
}

namespace strait {
namespace {

/// Bytes that `work` allocates.
template <class Work>
size_t bytes_of(const Work& work) {
  counted = 0;
  counting = true;
  work();
  counting = false;
  return counted;
}

struct Case {
  std::string codec;
  std::string feedback;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& info : codec_list()) {
    for (const auto& sample : info.samples) all.push_back({std::string(sample), "none"});
  }
  for (const char* feedback : {"ef", "ef21"}) {
    for (const char* codec : {"topk:0.1", "topk:0.1,values=fp16"}) all.push_back({codec, feedback});
  }
  return all;
}

/// Codecs that make another message of the message first, or try several forms of a group, and have room for it
/// only while they do; or that decompose a matrix in float64. As many times the message.
size_t messages_between(const std::string& codec) {
  const auto has = [&](const char* name) { return codec.find(name) != std::string::npos; };
  if (has("atomo")) return 20;
  return std::ranges::any_of(std::array{"channel", "daq", "rotate", "spikes", "elias", "bounded"}, has) ? 8 : 0;
}

TEST(Allocation, MessagesOfASteadyStateTakeNoMemoryOfTheirOwn) {
  constexpr size_t kSmall = 1024;  // shapes and handles of tensors
  at::set_num_threads(1);
  const at::Tensor x = at::randn({8, 16384});
  for (const auto& [codec, feedback] : cases()) {
    SCOPED_TRACE(codec + ", " + feedback);
    const auto link = make_link(codec, feedback);
    const auto encoder = link->make_encoder();
    const auto decoder = link->make_decoder();
    std::vector<std::byte> space(link->payload_size(meta_of(x)).bound);
    for (uint64_t step = 0; step < 4; ++step) {
      size_t used = 0;
      at::Tensor received;
      const size_t encoding = bytes_of([&] {
        ByteWriter out(space);
        encoder->encode(x, {.step = step}, out);
        used = out.used();
      });
      const size_t decoding = bytes_of([&] {
        ByteReader in(std::span<const std::byte>(space).first(used));
        received = decoder->decode(in, meta_of(x), {.step = step}).tensor;
      });
      if (step < 2) continue;  // they make the buffers; a state has two, which change places
      const size_t between = messages_between(codec) * x.nbytes();
      EXPECT_LT(encoding, between + kSmall);
      EXPECT_GE(decoding, x.nbytes());
      EXPECT_LT(decoding, x.nbytes() + between + kSmall);
    }
  }
}

}  // namespace
}  // namespace strait
