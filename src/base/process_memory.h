// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// Memory of the whole process, as the system counts it: weights, program and libraries included. 0 where the system
/// does not say.
namespace winnow {

/// Bytes of addresses that are in use, whether there is memory behind them or not.
std::size_t address_bytes();

/// Bytes that are resident now.
std::size_t resident_bytes();

/// The most that have been.
std::size_t peak_resident_bytes();

}  // namespace winnow
