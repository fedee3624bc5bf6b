// SPDX-License-Identifier: Apache-2.0
#include "cli/eval/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <string>

#include "winnow/error.h"

#ifdef WINNOW_HAS_MPI
#include <mpi.h>
#endif

namespace winnow::cli {

namespace {

/// Environment variables that mpirun sets (Open MPI, MPICH and relatives, Slurm). Without them MPI is not initialised:
/// that takes longer than many commands.
[[maybe_unused]] bool is_started_by_mpirun() {
  constexpr const char* kNames[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

}  // namespace

#ifdef WINNOW_HAS_MPI

Ranks::Ranks() : exceptions_(std::uncaught_exceptions()) {
  if (!is_started_by_mpirun()) return;
  MPI_Init(nullptr, nullptr);
  begun_ = true;
  MPI_Comm_rank(MPI_COMM_WORLD, &index_);
  MPI_Comm_size(MPI_COMM_WORLD, &count_);
}

Ranks::~Ranks() {
  // Without MPI_Finalize mpirun ends the other processes, which would wait for this one.
  if (begun_ && std::uncaught_exceptions() == exceptions_) MPI_Finalize();
}

void Ranks::wait() const {
  if (begun_) MPI_Barrier(MPI_COMM_WORLD);
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
          "this winnow was built without MPI: give each process --shard I/N and a folder of its own, and winnow eval "
          "merge");
  }
}

Ranks::~Ranks() = default;

void Ranks::wait() const {}

void Ranks::add_up(std::span<double> /*values*/) const {}

#endif

}  // namespace winnow::cli
