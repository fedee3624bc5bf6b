// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// Memory of the whole process as counted by the system, including weights, program and libraries. 0 if unknown.
namespace winnow {

/// Bytes of address space in use, backed by memory or not.
std::size_t address_bytes();

/// Bytes currently resident.
std::size_t resident_bytes();

/// Peak of the resident bytes.
std::size_t peak_resident_bytes();

}  // namespace winnow
