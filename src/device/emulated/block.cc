// SPDX-License-Identifier: Apache-2.0
#include "device/emulated/block.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

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

struct Fiber {
  static constexpr std::size_t kStack = std::size_t{96} << 10U;

  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStack);
  State state = State::ready;
  unsigned exchanges = 0;
  std::vector<Copy> copies;
  int commits = 0;
};

/// Memory whose end is followed by a guard page.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t pages = (bytes + page - 1) / page * page;
    all_ = pages + page;
    base_ =
        static_cast<unsigned char*>(mmap(nullptr, all_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + pages, page, PROT_NONE) != 0) std::abort();
    data_ = base_ + pages - bytes;
  }
  ~Guarded() { munmap(base_, all_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  unsigned char* data() const { return data_; }

 private:
  std::size_t all_;
  unsigned char* base_;
  unsigned char* data_;
};

class Block {
 public:
  Block(const Grid& grid, const std::function<void()>& kernel)
      : kernel_(&kernel),
        shared_bytes_(static_cast<std::size_t>(grid.shared)),
        shared_(shared_bytes_),
        fibers_(static_cast<std::size_t>(grid.threads)),
        slots_(fibers_.size() * 2) {}

  ~Block() { now = nullptr; }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void run(std::mt19937& random);

  static Block* now;
  int current = 0;

  Fiber& fiber() { return fibers_[static_cast<std::size_t>(current)]; }
  unsigned char* shared() const { return shared_.data(); }
  void wait(State at) {
    fiber().state = at;
    swapcontext(&fiber().context, &scheduler_);
  }
  std::span<const Slot> exchange(std::span<const std::byte> mine) {
    const std::size_t turn = fiber().exchanges++ % 2 * fibers_.size();
    std::copy(mine.begin(), mine.end(), slots_[turn + static_cast<std::size_t>(current)].begin());
    wait(State::at_warp);
    return {&slots_[turn + static_cast<std::size_t>(current / kWarp * kWarp)], std::size_t{kWarp}};
  }

 private:
  static void enter() {
    Block& block = *now;
    (*block.kernel_)();
    block.fiber().state = State::done;
    swapcontext(&block.fiber().context, &block.scheduler_);
  }
  bool run_warp(int warp);
  int count(State state) const {
    return static_cast<int>(
        std::count_if(fibers_.begin(), fibers_.end(), [=](const Fiber& f) { return f.state == state; }));
  }

  const std::function<void()>* kernel_;
  std::size_t shared_bytes_;
  Guarded shared_;
  std::vector<Fiber> fibers_;
  std::vector<Slot> slots_;  ///< [2][threads]
  ucontext_t scheduler_{};
};

Block* Block::now = nullptr;
std::mt19937 order(1);
Grid launched{};
int at_x = 0;
int at_y = 0;

/// Runs a warp until all of its threads wait or are done. Returns true if any of them ran.
bool Block::run_warp(int warp) {
  const auto first = fibers_.begin() + std::ptrdiff_t{warp} * kWarp;
  const auto end = first + std::min<std::ptrdiff_t>(kWarp, fibers_.end() - first);
  bool ran = false;
  for (;;) {
    for (auto fiber = first; fiber != end; ++fiber) {
      if (fiber->state != State::ready) continue;
      current = static_cast<int>(fiber - fibers_.begin());
      swapcontext(&scheduler_, &fiber->context);
      ran = true;
    }
    if (!std::all_of(first, end, [](const Fiber& f) { return f.state == State::at_warp; })) return ran;
    std::for_each(first, end, [](Fiber& f) { f.state = State::ready; });
  }
}

void Block::run(std::mt19937& random) {
  now = this;
  std::memset(shared_.data(), 0xff, shared_bytes_);
  for (Fiber& fiber : fibers_) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = Fiber::kStack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
    fiber.state = State::ready;
    fiber.copies.clear();
  }
  const int threads = static_cast<int>(fibers_.size());
  std::vector<int> warps(static_cast<std::size_t>((threads + kWarp - 1) / kWarp));
  std::iota(warps.begin(), warps.end(), 0);
  while (count(State::done) < threads) {
    std::shuffle(warps.begin(), warps.end(), random);
    bool ran = false;
    for (const int warp : warps) ran |= run_warp(warp);
    if (count(State::at_block) == threads) {
      for (Fiber& fiber : fibers_) fiber.state = State::ready;
    } else if (!ran) {
      std::fputs("threads of a block wait at different barriers\n", stderr);
      std::abort();
    }
  }
}

}  // namespace

void set_seed(std::uint32_t seed) { order.seed(seed); }

void run(const Grid& grid, const std::function<void()>& kernel) {
  launched = grid;
  Block block(grid, kernel);
  for (at_y = 0; at_y < grid.y; ++at_y) {
    for (at_x = 0; at_x < grid.x; ++at_x) block.run(order);
  }
}

int thread() { return Block::now->current; }
int block_x() { return at_x; }
int block_y() { return at_y; }
int blocks_x() { return launched.x; }
unsigned char* shared_memory() { return Block::now->shared(); }
void wait_for_block() { Block::now->wait(State::at_block); }
std::span<const Slot> exchange(std::span<const std::byte> mine) { return Block::now->exchange(mine); }

void copy(void* to, const void* from, bool there) {
  Fiber& fiber = Block::now->fiber();
  const Copy copy{to, from, there, fiber.commits};
  if (order() % 2 == 0) {
    copy.land();
  } else {
    fiber.copies.push_back(copy);
  }
}

void commit() { ++Block::now->fiber().commits; }

void wait_but(int commits) {
  Fiber& fiber = Block::now->fiber();
  std::erase_if(fiber.copies, [&](const Copy& copy) {
    const bool awaited = copy.commit < fiber.commits - commits;
    if (awaited) copy.land();
    return awaited;
  });
}

}  // namespace winnow::device::emulated
