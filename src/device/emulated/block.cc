// SPDX-License-Identifier: Apache-2.0
#include "device/emulated/block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

#include "device/emulated/fiber.h"

namespace winnow::device::emulated {
namespace {

enum class State : std::uint8_t { ready, at_block, at_warp, done };

struct Copy {
  void* to;
  const void* from;
  bool there;
  int commit;

  void land() const {
    if (there) {
      std::memcpy(to, from, 16);
    } else {
      std::memset(to, 0, 16);
    }
  }
};

/// Memory whose end is followed by a guard page. It is replaced by larger memory when needed.
class Guarded {
 public:
  Guarded() = default;
  ~Guarded() { release(); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  /// The last `bytes` before the guard page.
  unsigned char* last(std::size_t bytes) {
    if (end_ == nullptr || bytes > bytes_) grow(bytes);
    return end_ - bytes;
  }

 private:
  void grow(std::size_t bytes) {
    release();
    bytes_ = (bytes + page_ - 1) / page_ * page_;
    void* const base = mmap(nullptr, bytes_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) std::abort();
    end_ = static_cast<unsigned char*>(base) + bytes_;
    if (mprotect(end_, page_, PROT_NONE) != 0) std::abort();
  }
  void release() {
    if (end_ != nullptr) munmap(end_ - bytes_, bytes_ + page_);
  }

  std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::size_t bytes_ = 0;
  unsigned char* end_ = nullptr;
};

/// Runs blocks. Fibers and shared memory are kept for later launches, since most of these are short.
class Multiprocessor {
 public:
  void run(const Grid& grid, const std::function<void()>& kernel);
  void set_seed(std::uint32_t seed) { random_.seed(seed); }

  void wait(State at) {
    state(here.thread) = at;
    leave();
  }
  std::span<const Slot> exchange(std::span<const std::byte> mine) {
    const std::size_t turn = thread().exchanges++ % 2 * states_.size();
    std::copy(mine.begin(), mine.end(), slots_[turn + static_cast<std::size_t>(here.thread)].begin());
    wait(State::at_warp);
    return {&slots_[turn + static_cast<std::size_t>(here.thread / kWarp * kWarp)], std::size_t{kWarp}};
  }
  void copy(Copy copy);
  void commit() { ++thread().commits; }
  void wait_but(int commits);

 private:
  struct Thread {
    Fiber fiber{enter};
    unsigned exchanges = 0;
    std::vector<Copy> copies = {};
    int commits = 0;
  };

  [[noreturn]] static void enter();
  Thread& thread() { return threads_[static_cast<std::size_t>(here.thread)]; }
  State& state(int of) { return states_[static_cast<std::size_t>(of)]; }
  std::ptrdiff_t count(State of) const { return std::count(states_.begin(), states_.end(), of); }
  void run_block();
  bool run_warp(int first);
  int next(int begin);
  void leave();

  const std::function<void()>* kernel_ = nullptr;
  std::mt19937 random_{1};
  Guarded memory_;
  Fiber scheduler_;
  std::deque<Thread> threads_;  ///< as many as the largest block has had
  std::vector<State> states_;   ///< of the block's threads
  std::vector<Slot> slots_;     ///< [2][threads]
  int warp_ = 0;                ///< first thread of the warp that runs, and the one after its last
  int warp_end_ = 0;
};

Multiprocessor& multiprocessor() {
  static thread_local Multiprocessor one;
  return one;
}

void Multiprocessor::enter() {
  Multiprocessor& on = multiprocessor();
  for (;;) {
    (*on.kernel_)();
    on.wait(State::done);
  }
}

/// The first thread from `begin` on that can run in this warp; -1: all of them wait or are done.
int Multiprocessor::next(int begin) {
  const auto first = states_.begin() + warp_;
  const auto end = states_.begin() + warp_end_;
  auto found = std::find(states_.begin() + begin, end, State::ready);
  if (found == end && std::all_of(first, end, [](State of) { return of == State::at_warp; })) {
    std::fill(first, end, State::ready);
    found = first;
  }
  return found == end ? -1 : static_cast<int>(found - states_.begin());
}

/// Switches from the current thread to the next one of its warp, or to the scheduler.
void Multiprocessor::leave() {
  Fiber& from = thread().fiber;
  const int to = next(here.thread + 1);
  if (to == here.thread) return;
  if (to < 0) return from.switch_to(scheduler_);
  here.thread = to;
  from.switch_to(thread().fiber);
}

/// Runs a warp until all of its threads wait or are done. Returns true if any of them ran.
bool Multiprocessor::run_warp(int first) {
  warp_ = first;
  warp_end_ = std::min(first + kWarp, static_cast<int>(states_.size()));
  const int to = next(first);
  if (to < 0) return false;
  here.thread = to;
  scheduler_.switch_to(thread().fiber);
  return true;
}

void Multiprocessor::run_block() {
  std::fill(states_.begin(), states_.end(), State::ready);
  for (Thread& one : threads_) {
    one.copies.clear();
    one.exchanges = 0;
  }
  const auto threads = std::ssize(states_);
  std::vector<int> warps(static_cast<std::size_t>((threads + kWarp - 1) / kWarp));
  std::iota(warps.begin(), warps.end(), 0);
  while (count(State::done) < threads) {
    std::shuffle(warps.begin(), warps.end(), random_);
    bool ran = false;
    for (const int warp : warps) ran |= run_warp(warp * kWarp);
    if (count(State::at_block) == threads) {
      std::fill(states_.begin(), states_.end(), State::ready);
    } else if (!ran) {
      std::fputs("threads of a block wait at different barriers\n", stderr);
      std::abort();
    }
  }
}

void Multiprocessor::run(const Grid& grid, const std::function<void()>& kernel) {
  const auto threads = static_cast<std::size_t>(grid.threads);
  const auto shared = static_cast<std::size_t>(grid.shared);
  kernel_ = &kernel;
  while (threads_.size() < threads) threads_.emplace_back();
  states_.resize(threads);
  slots_.resize(2 * threads);
  here = {.thread = 0, .block_x = 0, .block_y = 0, .blocks_x = grid.x, .shared = memory_.last(shared)};
  for (here.block_y = 0; here.block_y < grid.y; ++here.block_y) {
    for (here.block_x = 0; here.block_x < grid.x; ++here.block_x) {
      std::memset(here.shared, 0xff, shared);
      run_block();
    }
  }
}

void Multiprocessor::copy(Copy copy) {
  copy.commit = thread().commits;
  if (random_() % 2 == 0) {
    copy.land();
  } else {
    thread().copies.push_back(copy);
  }
}

void Multiprocessor::wait_but(int commits) {
  std::erase_if(thread().copies, [first = thread().commits - commits](const Copy& copy) {
    const bool awaited = copy.commit < first;
    if (awaited) copy.land();
    return awaited;
  });
}

}  // namespace

void set_seed(std::uint32_t seed) { multiprocessor().set_seed(seed); }
void run(const Grid& grid, const std::function<void()>& kernel) { multiprocessor().run(grid, kernel); }
void wait_for_block() { multiprocessor().wait(State::at_block); }
std::span<const Slot> exchange(std::span<const std::byte> mine) { return multiprocessor().exchange(mine); }
void copy(void* to, const void* from, bool there) { multiprocessor().copy({to, from, there, 0}); }
void commit() { multiprocessor().commit(); }
void wait_but(int commits) { multiprocessor().wait_but(commits); }

}  // namespace winnow::device::emulated
