// SPDX-License-Identifier: Apache-2.0
// Documents in a folder with a damaged file: each operation gives the right result, or one sentence says what
// is wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "documents/archive.h"
#include "documents/some_document.h"
#include "support/damage.h"
#include "support/in_child.h"
#include "support/refusal.h"
#include "winnow/ask.h"

namespace winnow::documents {
namespace {

using test::refusal;

class DamagedStoreTest : public testing::Test {
 protected:
  /// Makes a store with documents, one of which was replaced.
  void make() {
    auto archive = open(store::Missing::is_created);
    for (const auto& [name, tokens] : sizes_) put(archive, name, tokens);
    put(archive, "b", 70);
    put(archive, "b", sizes_.at("b"));
    answer_ = ask();
  }

  Archive open(store::Missing missing = store::Missing::is_an_error) const {
    return Archive(store::open({folder_}, missing));
  }
  void put(Archive& archive, const std::string& name, int tokens) {
    const auto document = tiny_.read(tokens, {}, 3);
    archive.put({name, {}}, document.head, document.sequence());
  }
  std::vector<float> ask() {
    std::vector<std::shared_ptr<const Document>> documents;
    for (const auto& [name, tokens] : sizes_) documents.push_back(open().open(name, tiny_.identity()));
    const auto question = test::some_tokens(5, 9);
    AskOptions options;
    options.method = AskSpec::parse("reuse");
    return winnow::ask(*tiny_.session, documents, question, options).logits;
  }

  static void must(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error(what);
  }
  void must_have(const std::map<std::string, int>& sizes) const {
    std::map<std::string, int> found;
    for (const auto& info : open().list()) found[info.name] = info.tokens;
    must(found == sizes, "other documents are listed");
  }

  /// Does everything that a user can do. Expects that a whole store is still whole after each step.
  void use(bool asks) {
    if (!refusal([&] { must_have(sizes_); }).empty()) return;
    bool whole = false;
    refusal([&] { whole = open().verify({}).empty(); });
    if (asks) refusal([&] { must(ask() == answer_, "the answer is another one"); });
    for (const auto& [name, tokens] : sizes_) {
      refusal([&, &name = name] {
        for (int layer = 0; layer < 2; ++layer) open().open(name)->read_all(layer);
      });
    }
    auto expected = sizes_;
    const std::string a = "a";
    const auto added = refusal([&] { open().put({"d", {}}, another_.head, another_.sequence()); });
    if (added.empty()) expected["d"] = 90;
    const auto removed = refusal([&] { open().remove(std::span(&a, 1)); });
    if (removed.empty()) expected.erase("a");
    if (!whole) return;
    must(added.empty() && removed.empty(), "a whole store cannot be changed: " + added + removed);
    must_have(expected);
    must(open().verify({}).empty(), "a whole store is damaged after a change");
  }

  test::TempFolder above_{test::memory_folder()};
  std::string folder_ = above_ / "store";
  test::TinySession tiny_;
  const test::SomeDocument another_ = tiny_.read(90, {}, 4);
  const std::map<std::string, int> sizes_{{"a", 100}, {"b", 130}, {"c", 66}};
  std::vector<float> answer_;
};

TEST_F(DamagedStoreTest, nothing_is_wrong_without_a_sentence) {
  make();
  const test::StoreToDamage store(folder_);
  const auto flips = store.flips(40);
  ASSERT_GT(flips.size(), 1000U);
  EXPECT_EQ(test::failure_in_child([&](test::SharedText& doing) {
              for (std::size_t i = 0; i < flips.size(); ++i) {
                doing.set(print(flips[i]));
                store.damage(flips[i]);
                use(i % 100 == 0);
              }
              return "";
            }),
            "");
}

TEST_F(DamagedStoreTest, nor_if_a_file_is_cut_or_missing_or_a_folder) {
  make();
  const test::StoreToDamage store(folder_);
  EXPECT_EQ(test::failure_in_child([&](test::SharedText& doing) {
              for (const auto& [file, bytes] : store.whole()) {
                for (const std::size_t size : {std::size_t{0}, bytes.size() / 2}) {
                  doing.set(file + " cut to " + std::to_string(size));
                  store.repair();
                  store.write(file, bytes.substr(0, size));
                  use(true);
                }
                for (const bool is_folder : {false, true}) {
                  doing.set(file + (is_folder ? " is a folder" : " is missing"));
                  store.repair();
                  std::filesystem::remove(store.path(file));
                  if (is_folder) std::filesystem::create_directory(store.path(file));
                  use(true);
                }
              }
              return "";
            }),
            "");
}

TEST_F(DamagedStoreTest, names_are_covered_by_their_checksum) {
  make();
  store::open({folder_}, store::Missing::is_an_error)->change([](store::Change& change) {
    change.put_record("n/d", *change.record("n/c"));
    change.erase_record("n/c");
  });
  const auto says = refusal([&] { open().list(); });
  EXPECT_NE(says.find("the document d in " + folder_ + " is damaged: its checksum"), std::string::npos) << says;
}

}  // namespace
}  // namespace winnow::documents
