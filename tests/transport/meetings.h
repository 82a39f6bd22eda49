#pragma once

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strait/transport/emulated_group.h"
#include "strait/transport/group.h"
#include "tests/support/variable.h"
#include "tests/transport/ranks.h"

namespace strait::test {

/// A way to make a group of ranks that are threads.
struct Meeting {
  std::string name;

  /// Lets so many ranks do the work. Gives what each threw, empty where it threw nothing.
  std::function<std::vector<std::string>(int ranks, std::chrono::milliseconds timeout,
                                         const std::function<void(Group& group)>& work)>
      run;
};

/// Those for which LibTorch must have Gloo's headers.
std::vector<Meeting> meetings_over_gloo();

/// The same, with each rank sending over an emulated link.
inline Meeting over_links(const Meeting& meeting) {
  return {meeting.name + "OverLinks", [run = meeting.run](int ranks, auto timeout, const auto& work) {
            return run(ranks, timeout, [&](Group& group) {
              const std::shared_ptr<Group> borrowed(&group, [](Group*) {});
              work(*over_link(borrowed, {.bytes_per_second = 2e8, .latency_seconds = 1e-3}));
            });
          }};
}

/// All.
inline std::vector<Meeting> meetings() {
  std::vector<Meeting> all = meetings_over_gloo();
  all.push_back({"Sockets", [](int ranks, std::chrono::milliseconds timeout, const auto& work) {
                   return Ranks(ranks, timeout).run(work);
                 }});
  all.push_back({"Tls", [](int ranks, std::chrono::milliseconds timeout, const auto& work) {
                   const Variable secret("STRAIT_SECRET", "a secret of this test");
                   return Ranks(ranks, timeout).run(work);
                 }});
  all.push_back({"TlsOverThreeConnections", [](int ranks, std::chrono::milliseconds timeout, const auto& work) {
                   const Variable secret("STRAIT_SECRET", "a secret of this test");
                   return Ranks(ranks, timeout, {Carrier::tcp, 3}).run(work);
                 }});
  const size_t real = all.size();
  for (size_t i = 0; i < real; ++i) all.push_back(over_links(all[i]));
  return all;
}

/// A frame whose payload is of this size and value.
inline Buffer frame_of(size_t size, uint8_t value, uint32_t micro_batch) {
  Buffer frame(kFrameHeaderSize + size);
  frame.resize(frame.capacity());
  std::memset(frame.data() + kFrameHeaderSize, value, size);
  seal_frame(frame.bytes(), {.micro_batch = micro_batch});
  return frame;
}

}  // namespace strait::test
