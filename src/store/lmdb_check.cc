// SPDX-License-Identifier: Apache-2.0
#include "store/lmdb_check.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "store/lmdb_page.h"
#include "winnow/error.h"

namespace winnow::store {

namespace {

using namespace lmdb;

std::size_t page_size_of(const ByteSource& file) { return read_meta(file, 0, 0).free.pad; }

/// Pages [begin, end).
struct PageRun {
  std::uint64_t begin;
  std::uint64_t end;
};

/// The trees of a store, which have different rules.
enum class Kind : std::uint8_t { free, main, records, values };
const std::map<std::string, Kind> kNames{{"records", Kind::records}, {"values", Kind::values}};

/// Keys are in [least, below); an empty bound is none.
struct Bounds {
  std::string least;
  std::string below;
};

struct Child {
  std::uint64_t page;
  Bounds bounds;
};

/// Bytes of a number in an order that sorts like the number.
std::string sortable(std::span<const std::byte> number) {
  std::string out(reinterpret_cast<const char*>(number.data()), number.size());
  std::reverse(out.begin(), out.end());
  return out;
}

class StepCheck {
 public:
  StepCheck(const ByteSource& file, const Meta& meta, LmdbPages pages)
      : file_(file), meta_(meta), page_size_(meta.free.pad), pages_(pages) {}

  void run() {
    check(meta_.free, Kind::free);
    if (meta_.free.entries > 0 && newest_freed_ != meta_.step)
      fail(fmt::format("step {} is the last one that freed pages, but the file's last step is {}", newest_freed_,
                       meta_.step));
    check(meta_.main, Kind::main);
    if (trees_.size() != kNames.size())
      fail(fmt::format("it has {} tables, expected {}", trees_.size(), kNames.size()));
    for (const auto& [kind, tree] : trees_) check(tree, kind);
    check_used_once();
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { lmdb::fail(file_, why); }

  void check(const Tree& tree, Kind kind) {
    seen_ = {tree.pad, tree.flags, tree.depth, 0, 0, 0, 0, tree.root};
    if (tree.root == kNoPage ? tree.depth != 0 : tree.depth < 1 || tree.depth > kMostDepth)
      fail(fmt::format("a tree is {} pages deep", tree.depth));
    if (tree.root != kNoPage) visit({tree.root, {}}, tree.depth, kind);
    if (seen_.branch_pages != tree.branch_pages || seen_.leaf_pages != tree.leaf_pages ||
        seen_.overflow_pages != tree.overflow_pages || seen_.entries != tree.entries) {
      fail(fmt::format("a tree has {}, {} and {} pages and {} entries, expected {}, {}, {} and {}", seen_.branch_pages,
                       seen_.leaf_pages, seen_.overflow_pages, seen_.entries, tree.branch_pages, tree.leaf_pages,
                       tree.overflow_pages, tree.entries));
    }
  }

  /// `depth`: 1 for a leaf.
  void visit(const Child& place, int depth, Kind kind) {
    use(place.page, 1);
    if (++visited_ > meta_.last_page) fail("its pages form a cycle");
    if (depth > 1) {
      ++seen_.branch_pages;
      for (const auto& child : children(place, kind)) visit(child, depth - 1, kind);
      return;
    }
    ++seen_.leaf_pages;
    const Page page(file_, place.page, page_size_, kLeaf);
    if (page.count() == 0) page.fail("is empty");
    std::string before = place.bounds.least;
    for (std::size_t i = 0; i < page.count(); ++i) {
      const std::string key = key_of(page, i, kind);
      check_order(page, i > 0 ? key > before : key >= before, key, place.bounds);
      check_entry(page, i, kind);
      before = key;
    }
    seen_.entries += page.count();
  }

  /// Children of a branch page, whose first key LMDB never reads.
  std::vector<Child> children(const Child& place, Kind kind) const {
    const Page page(file_, place.page, page_size_, kBranch);
    if (page.count() < 2) page.fail(fmt::format("has {} children", page.count()));
    std::vector<Child> out;
    for (std::size_t i = 0; i < page.count(); ++i) {
      const std::string least = i == 0 ? place.bounds.least : key_of(page, i, kind);
      if (i > 0) check_order(page, least > out.back().bounds.least, least, place.bounds);
      if (i > 0) out.back().bounds.below = least;
      out.push_back({page.node(i).child(), {least, place.bounds.below}});
    }
    return out;
  }

  static std::string key_of(const Page& page, std::size_t i, Kind kind) {
    std::string key = page.key(i);
    if (key.empty() || key.size() > kLongestKey || (kind == Kind::free && key.size() != sizeof(std::uint64_t)))
      page.fail(fmt::format("has a key of {} bytes", key.size()));
    return kind == Kind::free ? sortable(std::as_bytes(std::span(key))) : key;
  }

  static void check_order(const Page& page, bool holds, const std::string& key, const Bounds& bounds) {
    if (!holds || (!bounds.below.empty() && key >= bounds.below)) page.fail("has keys out of order");
  }

  void check_entry(const Page& page, std::size_t i, Kind kind) {
    const auto flags = page.node(i).flags;
    if (kind == Kind::main ? flags != kSubTree : flags != kInPlace && flags != kOverflowing)
      page.fail(fmt::format("has node {} of kind {}", i, flags));
    const auto data = page.data(i);
    if (kind == Kind::main) return note_tree(page, i, data);
    const std::size_t size = page.node(i).data_size();
    std::optional<PageRun> run;
    if (flags == kOverflowing) run = check_run(page, data, size, kind);
    if (kind == Kind::free)
      check_freed(page, page.key(i), run ? read_run(*run, size) : Bytes(data.begin(), data.end()));
  }

  void note_tree(const Page& page, std::size_t i, std::span<const std::byte> data) {
    const auto name = kNames.find(page.key(i));
    Tree tree{};
    if (name == kNames.end() || data.size() != sizeof(tree)) page.fail("has a table of another kind");
    std::memcpy(&tree, data.data(), sizeof(tree));
    if (tree.flags != 0 || tree.pad != 0) page.fail(fmt::format("has a table with flags {}", tree.flags));
    trees_.emplace(name->second, tree);
  }

  /// Checks data stored outside its leaf, in a run of pages. A run may be longer than its data, except for values,
  /// which never change.
  PageRun check_run(const Page& page, std::span<const std::byte> where, std::size_t size, Kind kind) {
    std::uint64_t first = 0;
    std::memcpy(&first, where.data(), sizeof(first));
    std::uint64_t count = (sizeof(PageHeader) + size - 1) / page_size_ + 1;
    if (first < kMetaPages || first > meta_.last_page || count > meta_.last_page + 1 - first)
      page.fail(fmt::format("has data of {} bytes from page {} on", size, first));
    if (kind != Kind::values || pages_ == LmdbPages::of_values_too) {
      check_length(first + 1);
      const auto header = read_at<PageHeader>(file_, first * page_size_);
      if (header.number != first || header.flags != kOverflow || header.run() < count ||
          (kind == Kind::values && header.run() != count))
        fail(fmt::format("page {} of kind {} has the number {} and {} pages of data, expected {}", first, header.flags,
                         header.number, header.run(), count));
      count = header.run();
    }
    use(first, count);
    seen_.overflow_pages += count;
    return {first, first + count};
  }

  using Bytes = std::vector<std::byte>;
  Bytes read_run(const PageRun& run, std::size_t size) const {
    Bytes out(size);
    file_.read(run.begin * page_size_ + sizeof(PageHeader), out);
    return out;
  }

  /// Checks a list of free pages: their number, then the pages in descending order.
  void check_freed(const Page& page, const std::string& key, const Bytes& bytes) {
    std::vector<std::uint64_t> numbers(bytes.size() / sizeof(std::uint64_t));
    if (numbers.empty() || bytes.size() % sizeof(std::uint64_t) != 0)
      page.fail(fmt::format("has a list of free pages of {} bytes", bytes.size()));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    if (numbers.front() > numbers.size() - 1)
      page.fail(fmt::format("has a list of {} free pages in {} bytes", numbers.front(), bytes.size()));
    std::uint64_t before = meta_.last_page + 1;
    for (const auto number : std::span(numbers).subspan(1, numbers.front())) {
      if (number < kMetaPages || number >= before) page.fail(fmt::format("lists page {} as free", number));
      if (number + 1 == before && !runs_.empty() && runs_.back().begin == before) {
        runs_.back().begin = number;
      } else {
        runs_.push_back({number, number + 1});
      }
      before = number;
    }
    std::memcpy(&newest_freed_, key.data(), sizeof(newest_freed_));
  }

  void use(std::uint64_t first, std::uint64_t count) {
    if (first < kMetaPages || first > meta_.last_page || count > meta_.last_page + 1 - first)
      fail(fmt::format("{} pages from page {} on are in use, but page {} is the last", count, first, meta_.last_page));
    check_length(first + count);
    runs_.push_back({first, first + count});
  }
  void check_length(std::uint64_t pages) const {
    if (file_.size() < pages * page_size_)
      throw InputError(fmt::format("{} is truncated: it has {} of {} bytes", file_.name(), file_.size(),
                                   (meta_.last_page + 1) * page_size_));
  }

  void check_used_once() {
    std::sort(runs_.begin(), runs_.end(), [](const PageRun& a, const PageRun& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < runs_.size(); ++i) {
      if (runs_[i].begin < runs_[i - 1].end) fail(fmt::format("page {} is used twice", runs_[i].begin));
    }
  }

  const ByteSource& file_;
  Meta meta_;
  std::size_t page_size_;
  LmdbPages pages_;
  Tree seen_{};                 ///< totals of the current tree
  std::map<Kind, Tree> trees_;  ///< subtrees of the main tree
  std::uint64_t visited_ = 0;   ///< tree pages visited
  std::uint64_t newest_freed_ = 0;
  std::vector<PageRun> runs_;  ///< used and free pages
};

constexpr int kMetaReads = 4;
constexpr std::chrono::milliseconds kPause{5};

/// True if two steps are consecutive, or there is none yet. (If writing a meta page is interrupted, half of it replaces
/// an older one and has that one's step.)
bool are_consecutive(std::uint64_t even, std::uint64_t odd) {
  return (even == 0 && odd == 0) || (even % 2 == 0 && odd % 2 == 1 && (odd == even + 1 || even == odd + 1));
}

}  // namespace

void check_lmdb_metas(const ByteSource& file) {
  for (int i = 1;; ++i) {
    const std::size_t page_size = page_size_of(file);
    const auto even = read_meta(file, 0, page_size).step;
    const auto odd = read_meta(file, 1, page_size).step;
    if (are_consecutive(even, odd)) return;
    if (i == kMetaReads) fail(file, fmt::format("its last steps are {} and {}, which are not consecutive", even, odd));
    std::this_thread::sleep_for(kPause);  // other processes may have made steps in between
  }
}

bool check_lmdb_step(const ByteSource& file, std::uint64_t step, LmdbPages pages) {
  const Meta meta = read_meta(file, step % 2, page_size_of(file));
  if (meta.step > step) return false;
  if (meta.step < step) fail(file, fmt::format("its last step is {}, expected {}", meta.step, step));
  StepCheck(file, meta, pages).run();
  return true;
}

}  // namespace winnow::store
