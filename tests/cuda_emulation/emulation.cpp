#include "tests/cuda_emulation/emulation.h"

#include <ucontext.h>

#include <array>
#include <cstdlib>
#include <vector>

namespace strait::emulation {
namespace {

constexpr uint32_t kMostThreads = 256;
constexpr uint32_t kWarpSize = 32;
constexpr size_t kStackSize = size_t{64} << 10;

/// Threads that wait for each other. One that comes waits until the generation has changed.
struct Barrier {
  uint32_t waiting = 0;
  uint32_t generation = 0;
};

/// A thread of the block, with a stack that stays.
struct Fiber {
  ucontext_t context{};
  bool has_returned = false;
  uint64_t given = 0;  ///< to the warp
  std::vector<std::byte> stack = std::vector<std::byte>(kStackSize);
};

/// The block of threads that runs.
struct Block {
  std::array<Fiber, kMostThreads> fibers;
  ucontext_t caller{};
  const std::function<void()>* kernel = nullptr;
  uint32_t number = 0;
  uint32_t threads = 0;
  uint32_t running = 0;  ///< threads that have not returned
  uint32_t current = 0;
  Barrier all;
  std::array<Barrier, kMostThreads / kWarpSize> warps;
};

Block& block() {
  static Block block;
  return block;
}

/// Goes on with the next thread that has not returned.
void hand_on() {
  Block& own = block();
  Fiber& from = own.fibers[own.current];
  do {
    own.current = (own.current + 1) % own.threads;
  } while (own.fibers[own.current].has_returned);
  Fiber& to = own.fibers[own.current];
  if (&to != &from) swapcontext(&from.context, &to.context);
}

void wait_at(Barrier& barrier, uint32_t threads) {
  if (++barrier.waiting == threads) {
    barrier.waiting = 0;
    ++barrier.generation;
    return;
  }
  const uint32_t generation = barrier.generation;
  while (barrier.generation == generation) hand_on();
}

void wait_for_warp() { wait_at(block().warps[block().current / kWarpSize], kWarpSize); }

void run_thread() {
  Block& own = block();
  (*own.kernel)();
  own.fibers[own.current].has_returned = true;
  if (--own.running == 0) setcontext(&own.caller);
  // Those that wait may have waited for this one alone.
  if (own.all.waiting == own.running) {
    own.all.waiting = 0;
    ++own.all.generation;
  }
  hand_on();
}

}  // namespace

Index thread_index() { return {block().current}; }

Index block_index() { return {block().number}; }

void run(uint32_t blocks, uint32_t threads, const std::function<void()>& kernel) {
  if (threads == 0 || threads > kMostThreads || threads % kWarpSize != 0) std::abort();
  Block& own = block();
  own.kernel = &kernel;
  own.threads = threads;
  for (own.number = 0; own.number < blocks; ++own.number) {
    own.running = threads;
    own.current = 0;
    own.all = {};
    own.warps = {};
    for (uint32_t i = 0; i < threads; ++i) {
      Fiber& fiber = own.fibers[i];
      fiber.has_returned = false;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      makecontext(&fiber.context, run_thread, 0);
    }
    swapcontext(&own.caller, &own.fibers[0].context);
  }
}

void wait_for_block() { wait_at(block().all, block().running); }

uint64_t bits_of_lane(uint64_t bits, uint32_t of) {
  Block& own = block();
  own.fibers[own.current].given = bits;
  wait_for_warp();
  const uint64_t given = own.fibers[own.current / kWarpSize * kWarpSize + of % kWarpSize].given;
  wait_for_warp();  // before anybody gives something else
  return given;
}

uint32_t votes(bool vote) {
  Block& own = block();
  own.fibers[own.current].given = vote ? 1 : 0;
  wait_for_warp();
  uint32_t bits = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    bits |= static_cast<uint32_t>(own.fibers[own.current / kWarpSize * kWarpSize + i].given) << i;
  }
  wait_for_warp();
  return bits;
}

}  // namespace strait::emulation
