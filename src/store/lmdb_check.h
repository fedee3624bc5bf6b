// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/byte_stream.h"

/// LMDB believes every number in its file: a damaged one has it read and write anywhere. So whatever it will follow is
/// checked first, page by page, by code that never leaves the file. What records and values say is not looked at.
namespace winnow::store {

/// Which pages are checked. Those where values begin are many, and nothing in them is used before a value is erased.
enum class LmdbPages : std::uint8_t { of_trees, of_values_too };

/// The two pages by which LMDB opens a file. Throws InputError.
void check_lmdb_metas(const ByteSource& file);

/// Everything that step `step` of the store consists of: its trees, its free pages, and that no page is used twice.
/// False: later steps have taken the place of that one's meta page. Throws InputError. REQUIRES: nobody can write to
/// the step's pages, as long as a transaction of LMDB reads it or is the writer that follows it.
bool check_lmdb_step(const ByteSource& file, std::uint64_t step, LmdbPages pages);

}  // namespace winnow::store
