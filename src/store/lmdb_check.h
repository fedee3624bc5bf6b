// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/byte_stream.h"

/// LMDB trusts every number in its file: a damaged one makes it read and write anywhere. So whatever LMDB will read is
/// checked first, page by page, by code that stays within the file. The contents of records and values are not checked.
namespace winnow::store {

/// Which pages are checked. Those where values begin are many, and nothing in them is used before a value is erased.
enum class LmdbPages : std::uint8_t { of_trees, of_values_too };

/// The two pages by which LMDB opens a file. Throws InputError.
void check_lmdb_metas(const ByteSource& file);

/// Checks everything that step `step` of the store consists of: its trees, its free pages, and that no page is used
/// twice. False: a later step has overwritten that step's meta page. Throws InputError. REQUIRES: nobody writes to the
/// step's pages. So it is while a transaction of LMDB reads that step, or is the next writer.
bool check_lmdb_step(const ByteSource& file, std::uint64_t step, LmdbPages pages);

}  // namespace winnow::store
