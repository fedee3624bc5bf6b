// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// Memory of the whole process, as the system counts it: weights, program and libraries included.
namespace winnow::cli {

/// Bytes that are resident now.
std::size_t resident_bytes();

/// The most that have been.
std::size_t peak_resident_bytes();

}  // namespace winnow::cli
