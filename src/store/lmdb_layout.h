// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/as_size.h"

/// How LMDB 0.9 lays out a file on a machine of 64 bits (the structs of its mdb.c): two meta pages, then the pages of
/// B+ trees, runs of overflow pages and free pages in any order. Numbers are little-endian.
namespace winnow::store::lmdb {

inline constexpr std::uint64_t kNoPage = ~std::uint64_t{0};  ///< the root of an empty tree
inline constexpr std::uint64_t kMetaPages = 2;
inline constexpr std::uint32_t kMagic = 0xBEEFC0DE;
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kLeastPage = 512;
inline constexpr std::size_t kMostPage = 32768;
inline constexpr int kMostDepth = 32;  ///< LMDB's cursors have no room for more
inline constexpr std::size_t kLongestKey = 511;

/// What a page is; LMDB has other bits in memory, none of which may be set in a file.
enum PageFlags : std::uint16_t { kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8 };
/// What a leaf's node holds: its data (no bit), where its data is, or a tree of its own.
enum NodeFlags : std::uint16_t { kInPlace = 0, kOverflowing = 1, kSubTree = 2 };
/// The keys of the free list are numbers. No other tree has a flag.
inline constexpr std::uint16_t kNumberKeys = 8;

struct PageHeader {
  std::uint64_t number;
  std::uint16_t pad;
  std::uint16_t flags;
  std::uint16_t lower;  ///< where the offsets of the nodes end; the low half of an overflow run's number of pages
  std::uint16_t upper;  ///< where the nodes begin; the high half

  std::uint32_t run() const { return lower | static_cast<std::uint32_t>(upper) << 16U; }
};
static_assert(sizeof(PageHeader) == 16);

struct NodeHeader {
  std::uint16_t low;    ///< of the data's size, or of the child's number
  std::uint16_t high;   ///< bits 16 to 31
  std::uint16_t flags;  ///< bits 32 to 47 of the child's number
  std::uint16_t key_size;

  std::size_t data_size() const { return low | as_size(high) << 16U; }
  std::uint64_t child() const { return data_size() | static_cast<std::uint64_t>(flags) << 32U; }
};
static_assert(sizeof(NodeHeader) == 8);

/// A tree, and what it must come to.
struct Tree {
  std::uint32_t pad;  ///< in the free list: the size of a page
  std::uint16_t flags;
  std::uint16_t depth;
  std::uint64_t branch_pages;
  std::uint64_t leaf_pages;
  std::uint64_t overflow_pages;
  std::uint64_t entries;
  std::uint64_t root;
};
static_assert(sizeof(Tree) == 48);

/// What stands in a meta page after its header. Step n writes that of page n % 2, so that the one before stays.
struct Meta {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t address;
  std::uint64_t map_size;
  Tree free;  ///< by step: the pages that it has freed
  Tree main;  ///< the other trees by name
  std::uint64_t last_page;
  std::uint64_t step;
};
static_assert(sizeof(Meta) == 136);

}  // namespace winnow::store::lmdb
