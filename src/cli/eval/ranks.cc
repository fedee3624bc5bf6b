// SPDX-License-Identifier: Apache-2.0
#include "cli/eval/ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/as_size.h"
#include "cli/commands.h"
#include "winnow/error.h"

#ifdef WINNOW_HAS_MPI
#include <mpi.h>
#endif

namespace winnow::cli {

namespace {

/// Checks for environment variables of mpirun (Open MPI, MPICH and relatives, Slurm). Without them MPI is not
/// initialized, which takes longer than many commands.
[[maybe_unused]] bool is_started_by_mpirun() {
  constexpr const char* kNames[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

}  // namespace

#ifdef WINNOW_HAS_MPI

namespace {

constexpr std::chrono::milliseconds kMostWait(900);

/// Types of messages, which have no content.
enum Tag : std::uint8_t { kHasStopped, kHasSaid };

/// Sends a message without waiting; MPI frees it when it has been received.
void send(int to, Tag tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(nullptr, 0, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
}

/// Leaves the core to processes that still measure.
void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

void wait_for(std::vector<MPI_Request>& requests, std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  int are_done = 0;
  const auto test = [&] {
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &are_done, MPI_STATUSES_IGNORE);
    return are_done != 0;
  };
  while (!test() && std::chrono::steady_clock::now() < end) nap();
}

}  // namespace

Ranks::Ranks() : exceptions_(std::uncaught_exceptions()) {
  if (!is_started_by_mpirun()) return;
  MPI_Init(nullptr, nullptr);
  begun_ = true;
  MPI_Comm_rank(MPI_COMM_WORLD, &index_);
  MPI_Comm_size(MPI_COMM_WORLD, &count_);
  interrupt_on_sigterm();
}

Ranks::~Ranks() {
  // After an exception, MPI_Finalize is not called, so that mpirun ends the other processes, which would otherwise
  // wait.
  if (begun_ && std::uncaught_exceptions() == exceptions_) MPI_Finalize();
}

void Ranks::wait() const {
  if (!begun_) return;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  int all_are_here = 0;
  while (MPI_Test(&request, &all_are_here, MPI_STATUS_IGNORE), all_are_here == 0) {
    if (interrupted()) throw Interrupted("interrupted");
    nap();
  }
}

void Ranks::say_last(const std::function<void()>& say) const {
  if (!begun_) return say();
  std::vector<MPI_Request> others(is_first() ? as_size(count_ - 1) : 0);
  for (std::size_t i = 0; i < others.size(); ++i)
    MPI_Irecv(nullptr, 0, MPI_BYTE, static_cast<int>(i) + 1, kHasStopped, MPI_COMM_WORLD, &others[i]);
  if (is_first()) {
    wait_for(others, kMostWait / 2);
    say();
    for (int i = 1; i < count_; ++i) send(i, kHasSaid);
  } else {
    send(0, kHasStopped);
    others.resize(1);
    MPI_Irecv(nullptr, 0, MPI_BYTE, 0, kHasSaid, MPI_COMM_WORLD, others.data());
    wait_for(others, kMostWait);
  }
}

void Ranks::add_up(std::span<double> values) const {
  if (!begun_) return;
  void* const in = is_first() ? MPI_IN_PLACE : values.data();
  MPI_Reduce(in, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

#else

Ranks::Ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const size = std::getenv(name);
    if (size != nullptr && std::string(size) != "1")
      throw UsageError(
          "this winnow was built without MPI: give each process --shard I/N and a folder of its own, then use winnow "
          "eval merge");
  }
}

Ranks::~Ranks() = default;

void Ranks::wait() const {}

void Ranks::say_last(const std::function<void()>& say) const { say(); }

void Ranks::add_up(std::span<double> /*values*/) const {}

#endif

}  // namespace winnow::cli
