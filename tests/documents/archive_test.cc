// SPDX-License-Identifier: Apache-2.0
// Documents in a store: they are read back unchanged, damage is found, and several threads may use the store at once.
#include "documents/archive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "cache/sections.h"
#include "documents/some_document.h"
#include "store/any_store.h"
#include "store/fake_redis.h"
#include "support/cache_options.h"
#include "support/refusal.h"
#include "winnow/error.h"

namespace winnow::documents {
namespace {

using test::options_of;
using test::refusal;
using Outcome = AddedDocument::Outcome;

std::vector<float> decoded(const cache::Rows& rows, int i) {
  std::vector<float> out(rows.dim);
  cache::decode_row(rows.type, rows.row(i), out);
  return out;
}

class ArchiveTest : public test::AnyStoreTest {
 protected:
  Archive archive() { return Archive(open()); }
  Outcome put(const std::string& name, const test::SomeDocument& document) {
    return archive().put({name, {}}, document.head, document.sequence());
  }

  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& document : archive().list()) out.push_back(document.name);
    return out;
  }

  ContentRecord content(const std::string& name) {
    const auto bytes = open();
    const auto id = NameRecord::read(name, *bytes->record(kNamePrefix + name), "it").id;
    return ContentRecord::read(*bytes->record(kContentPrefix + id), "it");
  }

  /// Changes a stored value directly.
  void damage(const std::string& key, const std::function<void(store::Bytes&)>& change) {
    const auto bytes = open();
    const auto lease = bytes->value(key, std::span(&store::kWhole, 1));
    store::Bytes value(lease->parts.front().begin(), lease->parts.front().end());
    change(value);
    bytes->change([&](store::Change& c) { c.erase_value(key); });
    bytes->change([&](store::Change& c) { c.add_value(key, value.size(), [&](ByteSink& to) { to.write(value); }); });
  }

  /// Compares a part of one lane with the lane that it was cut from.
  static void expect_lane(const LanePart& part, const cache::LayerLanes& lanes, int head, int first_slot) {
    ASSERT_EQ(part.keys.count, static_cast<int>(part.positions.size()));
    ASSERT_EQ(part.values.count, part.keys.count);
    std::vector<float> row(part.keys.dim);
    for (int i = 0; i < part.keys.count; ++i) {
      ASSERT_EQ(part.positions[i], lanes.position(head, first_slot + i));
      lanes.key(head, first_slot + i, row);
      ASSERT_EQ(decoded(part.keys, i), row);
      lanes.value(head, first_slot + i, row);
      ASSERT_EQ(decoded(part.values, i), row);
    }
  }

  test::TinySession tiny_;
};
INSTANTIATE_TEST_SUITE_P(stores, ArchiveTest, testing::Values("memory", "folder", "redis"), test::name_of_store);

TEST_P(ArchiveTest, gives_the_rows_that_were_put) {
  for (const char* type : {"f16", "f32", "q8_0/q4_0", "q8_0/f32"}) {
    const auto document = tiny_.read(501, options_of("full", "", type));
    EXPECT_EQ(put(type, document), Outcome::added);
    const auto stored = archive().open(type, tiny_.identity());
    EXPECT_EQ(stored->tokens(), 501);
    EXPECT_FALSE(stored->is_compressed());
    EXPECT_EQ(stored->head().layers, document.head.layers);
    const std::vector<TokenRange> stretches{{0, 64}, {448, 501}, {130, 131}, {100, 300}, {500, 501}};
    for (int layer = 0; layer < 2; ++layer) {
      const auto part = stored->read(layer, stretches);
      ASSERT_EQ(part.stretches.size(), stretches.size());
      for (std::size_t s = 0; s < stretches.size(); ++s) {
        ASSERT_EQ(part.stretches[s].size(), 2U);
        for (int h = 0; h < 2; ++h) {
          const auto& lane = part.stretches[s][h];
          ASSERT_EQ(lane.keys.count, stretches[s].end - stretches[s].begin);
          expect_lane(lane, document.sequence().lanes(layer), h, stretches[s].begin);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(lane.keys.data) % 2, 0U);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(lane.values.data) % (lane.values.type == ElementType::f32 ? 4 : 2),
                    0U);
        }
      }
      const auto all = stored->read_all(layer);
      ASSERT_EQ(all.stretches.front().front().keys.count, 501);
      expect_lane(all.stretches.front()[1], document.sequence().lanes(layer), 1, 0);
    }
  }
  EXPECT_TRUE(archive().verify({}).empty());
}

TEST_P(ArchiveTest, gives_the_ragged_lanes_of_compressed_documents) {
  for (const char* spec : {"ada-snapkv", "h2o", "streaming-llm"}) {
    const auto document = tiny_.read(300, options_of(spec, "20%"));
    put(spec, document);
    const auto stored = archive().open(spec, tiny_.identity());
    EXPECT_TRUE(stored->is_compressed());
    for (int layer = 0; layer < 2; ++layer) {
      const auto part = stored->read_all(layer);
      for (int h = 0; h < 2; ++h) {
        const auto& lane = part.stretches.front()[h];
        ASSERT_EQ(lane.keys.count, document.sequence().lanes(layer).length(h));
        ASSERT_LT(lane.keys.count, 300);
        expect_lane(lane, document.sequence().lanes(layer), h, 0);
      }
    }
    const auto info = archive().info(spec);
    EXPECT_EQ(info.cache.spec.print(), document.head.saved.options.spec.print());
    EXPECT_EQ(info.cache.budget->print(), "20%");
  }
  EXPECT_TRUE(archive().verify({}).empty());
}

TEST_P(ArchiveTest, names_stand_for_contents) {
  const auto one = tiny_.read(100, {}, 1);
  const auto other = tiny_.read(120, {}, 2);
  EXPECT_EQ(put("a", one), Outcome::added);
  const auto number = content("a").number;
  EXPECT_EQ(put("a", one), Outcome::unchanged);
  EXPECT_EQ(put("b", one), Outcome::added);
  EXPECT_EQ(content("a").number, number) << "written once";
  EXPECT_EQ(content("b").number, number);

  EXPECT_EQ(put("a", other), Outcome::replaced);
  EXPECT_EQ(archive().open("a")->tokens(), 120);
  EXPECT_EQ(archive().open("b")->tokens(), 100);
  const auto key = content("b").layer_key(0);
  EXPECT_TRUE(open()->value(key, {}));
  const std::string b = "b";
  archive().remove(std::span(&b, 1));
  EXPECT_FALSE(open()->value(key, {})) << "no name stands for it";
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  EXPECT_EQ(refusal([&] { archive().open("b"); }), "there is no document 'b': there are 'a'");

  const std::vector<std::string> both{"a", "gone"};
  EXPECT_NE(refusal([&] { archive().remove(both); }).find("there is no document 'gone': there are 'a'"),
            std::string::npos);
  EXPECT_EQ(names(), std::vector<std::string>{"a"}) << "all or none";
  EXPECT_TRUE(archive().verify({}).empty());
}

TEST_P(ArchiveTest, contents_differ_by_model_tokens_and_how_they_are_kept) {
  const auto tokens = test::some_tokens(100, 1);
  auto more = tokens;
  more.push_back(7);
  auto other = tiny_.identity();
  other.rope ^= 1U;
  const auto id = content_id(tiny_.identity(), {}, tokens);
  EXPECT_EQ(id.size(), 32U);
  EXPECT_NE(id, content_id(tiny_.identity(), {}, more));
  EXPECT_NE(id, content_id(other, {}, tokens));
  EXPECT_NE(id, content_id(tiny_.identity(), options_of("full", "", "q8_0"), tokens));
  EXPECT_NE(content_id(tiny_.identity(), options_of("snapkv", "20%"), tokens),
            content_id(tiny_.identity(), options_of("snapkv", "21%"), tokens));
}

TEST_P(ArchiveTest, damage_is_found_where_it_is_read) {
  const auto document = tiny_.read(500);
  put("a", document);
  const auto record = content("a");
  const PlainLayer plain(document.head.saved, 0);
  damage(record.layer_key(1),
         [&](store::Bytes& v) { v[plain.values(1, 5 * kBlock, 6 * kBlock).begin + 3] ^= std::byte{1}; });

  const auto stored = archive().open("a");
  const std::vector<TokenRange> sound{{0, 64}, {64, 320}, {384, 500}};
  EXPECT_NO_THROW(stored->read(1, sound)) << "what is not read is not computed";
  EXPECT_NO_THROW(stored->read_all(0));
  const TokenRange broken{383, 384};
  EXPECT_NE(refusal([&] {
              stored->read(1, std::span(&broken, 1));
            }).find("layer 1 of the document a in " + archive().where() + " is damaged: the checksum of block 5"),
            std::string::npos);
  EXPECT_THROW(stored->read_all(1), InputError);
  const auto damages = archive().verify({});
  ASSERT_EQ(damages.size(), 1U);
  EXPECT_EQ(damages.front().name, "a");
  EXPECT_NE(damages.front().what.find("block 5"), std::string::npos);

  damage(record.layer_key(0), [&](store::Bytes& v) { v[plain.positions(1).begin + 40] ^= std::byte{1}; });
  EXPECT_NE(refusal([&] { archive().open("a")->read(0, sound); }).find("the checksum of its positions"),
            std::string::npos);
  damage(record.layer_key(0), [](store::Bytes& v) { v.resize(v.size() - 1); });
  EXPECT_NE(
      refusal([&] { archive().open("a")->read(0, sound); }).find("bytes, expected " + std::to_string(plain.size())),
      std::string::npos);
  EXPECT_FALSE(archive().verify({}).empty());

  damage(record.head_key(), [](store::Bytes& v) { v[v.size() / 2] ^= std::byte{4}; });
  EXPECT_NE(refusal([&] {
              archive().open("a");
            }).find("the document a in " + archive().where() + " is damaged: its checksum"),
            std::string::npos);
  open()->change([&](store::Change& c) { c.erase_value(record.head_key()); });
  EXPECT_NE(refusal([&] { archive().open("a"); }).find("is gone"), std::string::npos);
  const std::string a = "a";
  archive().remove(std::span(&a, 1));
  EXPECT_TRUE(archive().verify({}).empty());
}

TEST_P(ArchiveTest, damage_in_a_compressed_document_is_found) {
  put("a", tiny_.read(300, options_of("snapkv", "50")));
  damage(content("a").layer_key(0), [](store::Bytes& v) { v[v.size() - 9] ^= std::byte{16}; });
  EXPECT_NE(refusal([&] { archive().open("a")->read_all(0); }).find("the checksum of its lanes"), std::string::npos);
  EXPECT_EQ(archive().verify({}).size(), 1U);
}

TEST_P(ArchiveTest, refuses_other_models_and_versions) {
  put("a", tiny_.read(100));
  const test::TinySession other(2);
  EXPECT_NE(refusal([&] {
              archive().open("a", other.identity());
            }).find("the document a in " + archive().where() + " was saved with the model tiny"),
            std::string::npos);
  auto turned = tiny_.identity();
  turned.rope ^= 1U;
  EXPECT_NE(refusal([&] { archive().open("a", turned); }).find("other RoPE frequencies"), std::string::npos);
  EXPECT_NO_THROW(archive().open("a", tiny_.identity()));

  const std::uint32_t later = kDocumentVersion + 1;
  open()->change([&](store::Change& c) { c.put_record(kFormatKey, std::as_bytes(std::span(&later, 1))); });
  EXPECT_NE(refusal([&] { archive(); }).find("have format version 2, but this winnow reads version 1"),
            std::string::npos);
}

TEST_P(ArchiveTest, exported_documents_come_back) {
  const std::string path = folder_ / "a.doc";
  for (const auto& options : {CacheOptions{}, options_of("ada-snapkv", "20%", "q8_0")}) {
    const auto document = tiny_.read(300, options);
    archive().put({"a", {"x", "y"}}, document.head, document.sequence());
    archive().export_to("a", path);
    const std::string a = "a";
    archive().remove(std::span(&a, 1));
    Label label;
    EXPECT_EQ(archive().import_from(path, label), Outcome::added);
    EXPECT_EQ(label.name, "a");
    EXPECT_EQ(archive().info("a").tags, (std::vector<std::string>{"x", "y"}));
    const auto part = archive().open("a", tiny_.identity())->read_all(1);
    expect_lane(part.stretches.front()[1], document.sequence().lanes(1), 1, 0);
    label = {"b", {}};
    archive().import_from(path, label);
    EXPECT_EQ(content("a").number, content("b").number);
    EXPECT_TRUE(archive().verify({}).empty());
    archive().remove(std::vector<std::string>{"a", "b"});
  }
}

TEST_P(ArchiveTest, a_damaged_export_is_refused) {
  const std::string path = folder_ / "a.doc";
  put("a", tiny_.read(70));
  archive().export_to("a", path);
  store::Bytes bytes;
  {
    const FileSource file(path);
    bytes.resize(file.size());
    file.read(0, bytes);
  }
  const auto write = [&](const store::Bytes& what) {
    ReplacingFile file(path);
    file.write(what);
    file.commit();
  };
  const std::string a = "a";
  archive().remove(std::span(&a, 1));
  for (std::size_t at = 0; at < bytes.size(); at += 97) {
    auto flipped = bytes;
    flipped[at] ^= std::byte{2};
    write(flipped);
    Label label;
    ASSERT_THROW(archive().import_from(path, label), InputError) << at;
  }
  bytes.resize(bytes.size() - 20);
  write(bytes);
  Label label;
  EXPECT_NE(refusal([&] { archive().import_from(path, label); }).find("is truncated"), std::string::npos);
  EXPECT_TRUE(names().empty());
}

TEST_P(ArchiveTest, a_bad_name_in_an_export_is_damage_and_shown_to_its_end) {
  const std::string path = folder_ / "a.doc";
  put("a", tiny_.read(70));
  archive().export_to("a", path);
  const cache::FileFormat format{{'w', 'i', 'n', 'n', 'o', 'w', 'd', 'c'}, kDocumentVersion, "an exported document"};
  MemorySink label;
  ::winnow::put(label, std::string_view("a\0b", 3));
  ::winnow::put(label, std::uint32_t{0});
  const std::string renamed = folder_ / "renamed.doc";
  {
    const FileSource from(path);
    const cache::SectionReader reader(from, format);
    std::vector<store::Bytes> sections{label.bytes()};
    for (int i = 1; i < reader.count(); ++i) {
      ByteCursor cursor = reader.section(i);
      cursor.read(std::span<std::byte>(sections.emplace_back(cursor.left())), "a section");
    }
    std::vector<std::size_t> lengths;
    for (const auto& section : sections) lengths.push_back(section.size());
    ReplacingFile to(renamed);
    cache::SectionWriter writer(to, format, lengths);
    for (const auto& section : sections) writer.section([&](ByteSink& sink) { sink.write(section); });
    to.commit();
  }
  for (const char* const name : {"", "another"}) {
    Label given{name, {}};
    const std::string why = refusal([&] { archive().import_from(renamed, given); });
    EXPECT_NE(why.find("renamed.doc is damaged: a document cannot be called `a\\x00b`: a name has 1 to 200 bytes"),
              std::string::npos)
        << why;
    EXPECT_THROW(check_exported(renamed, name), InputError);
  }
}

TEST_P(ArchiveTest, collects_what_was_not_used_for_the_longest_time) {
  for (const int i : {3, 1, 2}) {
    put(std::to_string(i), tiny_.read(100, {}, static_cast<unsigned>(i)));
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  const auto bytes = archive().info("1").bytes;
  EXPECT_TRUE(archive().gc(3 * bytes).empty());
  auto gone = archive().gc(2 * bytes);
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone.front().name, "3");
  put("2 too", tiny_.read(100, {}, 2));
  gone = archive().gc(bytes);
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone.front().name, "1");
  EXPECT_EQ(archive().gc(0).size(), 2U);
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(open()->records("").size(), 1U) << "the format's version alone";
}

TEST_P(ArchiveTest, what_is_removed_while_it_is_read_is_an_error) {
  const auto document = tiny_.read(300);
  put("a", document);
  const auto stored = archive().open("a");
  const auto held = stored->read_all(0);
  const std::string a = "a";
  archive().remove(std::span(&a, 1));
  put("other", tiny_.read(300, {}, 5));
  expect_lane(held.stretches.front()[0], document.sequence().lanes(0), 0, 0);
  EXPECT_NE(refusal([&] { stored->read_all(1); }).find("is gone: the document was removed or replaced meanwhile"),
            std::string::npos);
}

TEST_P(ArchiveTest, many_threads_add_read_and_remove) {
  std::vector<test::SomeDocument> documents;
  for (unsigned i = 0; i < 4; ++i) documents.push_back(tiny_.read(130 + static_cast<int>(i), {}, i));
  put("kept", documents[0]);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        const auto& document = documents[(t + i) % 4];
        const std::string name = t % 2 == 0 ? "shared" : "own " + std::to_string(t);
        try {
          archive().put({name, {}}, document.head, document.sequence());
          const auto stored = archive().open(name);
          const auto part = stored->read_all(1);
          // Another thread may have replaced the document, but it must be a whole one.
          const auto& is = documents[stored->tokens() - 130];
          std::vector<float> row(32);
          is.sequence().lanes(1).key(1, 129, row);
          if (decoded(part.stretches.front()[1].keys, 129) != row) ++wrong;
          if (i % 3 == 2) archive().remove(std::span(&name, 1));
        } catch (const InputError& error) {
          const std::string what = error.what();
          if (what.find("there is no document") == std::string::npos && what.find("is gone") == std::string::npos) {
            ++wrong;
            ADD_FAILURE() << what;
          }
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(archive().verify({}).empty());
  EXPECT_EQ(archive().open("kept")->tokens(), 130);
}

TEST_P(ArchiveTest, names_of_the_first_version_are_read) {
  put("a", tiny_.read(100));
  MemorySink first;  // the first version: the checksum does not cover the name
  winnow::put(first, kDocumentVersion);
  winnow::put(first, std::string_view(archive().info("a").id));
  winnow::put(first, std::uint32_t{1});
  winnow::put(first, std::string_view("x"));
  winnow::put(first, std::int64_t{1'700'000'000'000});
  winnow::put(first, hash_of(first.bytes()));
  open()->change([&](store::Change& change) { change.put_record(kNamePrefix + "old", first.bytes()); });
  EXPECT_EQ(archive().info("old").tags, std::vector<std::string>{"x"});
  EXPECT_EQ(archive().open("old")->tokens(), 100);
  EXPECT_TRUE(archive().verify({}).empty());
}

TEST_P(ArchiveTest, a_record_that_is_none_of_its_kinds_is_damage) {
  put("a", tiny_.read(100));
  open()->change([](store::Change& change) { change.put_record("m/a", {}); });
  EXPECT_NE(refusal([&] { archive().list(); }).find("a record is of an unknown kind"), std::string::npos);
  EXPECT_EQ(archive().verify({}).size(), 1U);
  open()->change([](store::Change& change) {
    change.erase_record("m/a");
    change.erase_record(kFormatKey);
  });
  EXPECT_NE(refusal([&] { archive(); }).find("the version of their format is missing"), std::string::npos);
}

/// Replies of a server are checked each time, not only the first time.
TEST(CopiedDocumentTest, copies_are_verified_whenever_they_are_fetched) {
  test::TinySession tiny;
  test::FakeRedis server;
  Archive archive(store::open({server.url()}, store::Missing::is_created));
  const auto plain = tiny.read(500);
  const auto small = tiny.read(300, options_of("snapkv", "50"));
  archive.put({"plain", {}}, plain.head, plain.sequence());
  archive.put({"small", {}}, small.head, small.sequence());
  const auto read_plain = archive.open("plain");
  const auto read_small = archive.open("small");
  const TokenRange stretch{100, 300};
  const auto read = [&] {
    read_plain->read(1, std::span(&stretch, 1));
    read_small->read_all(1);
  };
  read();
  const auto change = [&](const std::function<void(std::string&)>& how) {
    server.tamper([how](const test::Words& words, const std::string& answer) {
      std::string out = answer;
      if (words.front() == "GETRANGE") how(out);
      return out;
    });
  };
  change([](std::string& answer) { answer[answer.size() - 3] ^= 1; });
  EXPECT_NE(refusal([&] { read_plain->read(1, std::span(&stretch, 1)); }).find("the checksum of block"),
            std::string::npos);
  EXPECT_NE(refusal([&] { read_small->read_all(1); }).find("the checksum of its lanes"), std::string::npos);
  change([](std::string& answer) { answer = test::text_reply("short"); });
  EXPECT_NE(refusal([&] { read_plain->read(1, std::span(&stretch, 1)); }).find("lengths other than requested"),
            std::string::npos);
  EXPECT_FALSE(refusal([&] { read_small->read_all(1); }).empty());
  server.tamper({});
  EXPECT_NO_THROW(read());
}

TEST(DocumentStoreTest, an_export_is_checked_before_there_is_a_store) {
  const test::TempFolder folder;
  const test::TinySession tiny;
  DocumentStore store(folder / "documents");
  store.add(*tiny.session, {"a", {}, {"some words to read", {}, {}}});
  store.export_to("a", folder / "a.doc");
  EXPECT_NO_THROW(winnow::check_exported(folder / "a.doc"));
  EXPECT_THROW(winnow::check_exported(folder / "a.doc", "a\nb"), UsageError);
  EXPECT_NE(refusal([&] { winnow::check_exported(folder / "documents/records"); }).find("is not an exported document"),
            std::string::npos);
  const auto size = std::filesystem::file_size(folder / "a.doc");
  std::filesystem::resize_file(folder / "a.doc", size - 1);
  EXPECT_NE(refusal([&] { winnow::check_exported(folder / "a.doc"); }).find("truncated"), std::string::npos);
}

TEST(DocumentStoreTest, adds_texts_once) {
  const test::TempFolder folder;
  test::TinySession tiny;
  DocumentStore store(folder / "documents");
  const NewDocument document{"a", {"x"}, {"some words to read", {}, {}}};
  const auto first = store.add(*tiny.session, document);
  EXPECT_EQ(first.outcome, Outcome::added);
  EXPECT_TRUE(first.was_read);
  EXPECT_EQ(first.info.tags, std::vector<std::string>{"x"});
  EXPECT_EQ(store.add(*tiny.session, document).outcome, Outcome::unchanged);
  EXPECT_FALSE(store.add(*tiny.session, {"b", {}, document.text}).was_read);
  EXPECT_EQ(store.add(*tiny.session, {"a", {}, {"other words", {}, {}}}).outcome, Outcome::replaced);
  EXPECT_EQ(store.list().size(), 2U);

  EXPECT_NE(refusal([&] {
              store.add(*tiny.session, {"c", {}, {std::string(1100, 'x'), {}, {}}});
            }).find("the document c has 1104 tokens, more than the model's context of 1024"),
            std::string::npos);
  EXPECT_NE(refusal([&] { store.add(*tiny.session, {"c", {}, {}}); }).find("is empty"), std::string::npos);
  EXPECT_THROW(store.add(*tiny.session, {"", {}, document.text}), UsageError);
  EXPECT_THROW(store.add(*tiny.session, {"a\nb", {}, document.text}), UsageError);
  EXPECT_THROW(store.add(*tiny.session, {std::string(201, 'x'), {}, document.text}), UsageError);
  EXPECT_EQ(store.list().size(), 2U);
}

}  // namespace
}  // namespace winnow::documents
