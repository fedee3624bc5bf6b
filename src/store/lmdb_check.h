// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/byte_stream.h"

/// LMDB trusts every number in its file: a damaged one makes it read and write anywhere. So everything that LMDB will
/// read is first checked, LMDB page by LMDB page, by code that stays within the file. The contents of records and
/// values are not checked.
namespace winnow::store {

/// LMDB pages to check. First pages of values are numerous, and are only used when a value is erased.
enum class LmdbPages : std::uint8_t { of_trees, of_values_too };

/// Checks the two meta pages with which LMDB opens a file. Throws InputError.
void check_lmdb_metas(const ByteSource& file);

/// Checks everything that step `step` of the store consists of: its trees, its free pages, and that no page is used
/// twice. Returns false if a later step has overwritten that step's meta page. Throws InputError. REQUIRES: the step's
/// pages are not written, which holds while an LMDB transaction reads that step or is the next writer.
bool check_lmdb_step(const ByteSource& file, std::uint64_t step, LmdbPages pages);

}  // namespace winnow::store
