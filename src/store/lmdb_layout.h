// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/as_size.h"

/// File layout of LMDB 0.9 on 64-bit machines (the structs of its mdb.c): two meta pages, then pages of B+ trees, runs
/// of overflow pages and free pages in any order. Numbers are little-endian.
namespace winnow::store::lmdb {

inline constexpr std::uint64_t kNoPage = ~std::uint64_t{0};  ///< root of an empty tree
inline constexpr std::uint64_t kMetaPages = 2;
inline constexpr std::uint32_t kMagic = 0xBEEFC0DE;
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kLeastPage = 512;
inline constexpr std::size_t kMostPage = 32768;
inline constexpr int kMostDepth = 32;  ///< limit of LMDB's cursors
inline constexpr std::size_t kLongestKey = 511;

/// Kind of a page. LMDB has further bits in memory, which must not be set in a file.
enum PageFlags : std::uint16_t { kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8 };
/// Contents of a leaf's node: data (no bit), the place of its data, or a subtree.
enum NodeFlags : std::uint16_t { kInPlace = 0, kOverflowing = 1, kSubTree = 2 };
/// The keys are numbers, in the free list only. No other tree has a flag.
inline constexpr std::uint16_t kNumberKeys = 8;

struct PageHeader {
  std::uint64_t number;
  std::uint16_t pad;
  std::uint16_t flags;
  std::uint16_t lower;  ///< end of the node offsets; in an overflow run, the low half of its number of pages
  std::uint16_t upper;  ///< begin of the nodes; the high half

  std::uint32_t run() const { return lower | static_cast<std::uint32_t>(upper) << 16U; }
};
static_assert(sizeof(PageHeader) == 16);

struct NodeHeader {
  std::uint16_t low;    ///< low bits of the data's size, or of the child's number
  std::uint16_t high;   ///< bits 16 to 31
  std::uint16_t flags;  ///< bits 32 to 47 of the child's number
  std::uint16_t key_size;

  std::size_t data_size() const { return low | as_size(high) << 16U; }
  std::uint64_t child() const { return data_size() | static_cast<std::uint64_t>(flags) << 32U; }
};
static_assert(sizeof(NodeHeader) == 8);

/// A tree and its expected totals.
struct Tree {
  std::uint32_t pad;  ///< in the free list: the page size
  std::uint16_t flags;
  std::uint16_t depth;
  std::uint64_t branch_pages;
  std::uint64_t leaf_pages;
  std::uint64_t overflow_pages;
  std::uint64_t entries;
  std::uint64_t root;
};
static_assert(sizeof(Tree) == 48);

/// Contents of a meta page after its header. Step n writes page n % 2, so the previous one stays.
struct Meta {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t address;
  std::uint64_t map_size;
  Tree free;  ///< freed pages by step
  Tree main;  ///< the other trees, by name
  std::uint64_t last_page;
  std::uint64_t step;
};
static_assert(sizeof(Meta) == 136);

}  // namespace winnow::store::lmdb
