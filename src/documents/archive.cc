// SPDX-License-Identifier: Apache-2.0
#include "documents/archive.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/printable.h"
#include "cache/lanes_file.h"
#include "documents/stored_document.h"
#include "policy/suggest.h"
#include "winnow/error.h"

namespace winnow::documents {

namespace {

constexpr std::size_t kLongestName = 200;
constexpr std::int64_t kUseGrain = 3'600'000;  ///< ms: a use is recorded if the last recorded one is older
constexpr int kTries = 10;

bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

DocumentInfo::Time time_of(std::int64_t ms) { return DocumentInfo::Time(std::chrono::milliseconds(ms)); }

}  // namespace

void Label::check() const {
  if (name.empty() || name.size() > kLongestName || has_control_characters(name))
    throw UsageError(
        fmt::format("a document cannot be called `{}`: a name has 1 to {} bytes without control characters",
                    brief(name), kLongestName));
  for (const auto& tag : tags) {
    if (tag.empty() || tag.size() > kLongestName || has_control_characters(tag))
      throw UsageError(fmt::format("`{}` cannot be a tag: a tag has 1 to {} bytes without control characters",
                                   brief(tag), kLongestName));
  }
}

Archive::Archive(std::shared_ptr<store::ByteStore> bytes) : bytes_(std::move(bytes)) {
  const auto found = bytes_->record(kFormatKey);
  std::uint32_t version = kDocumentVersion;
  if (found) {
    const MemorySource source(*found, where());
    version = ByteCursor(source, 0, found->size()).take<std::uint32_t>("the store's version");
  } else {
    if (const auto all = bytes_->records(""); !all.empty() && !all.contains(kFormatKey))
      throw InputError(fmt::format("the documents in {} are damaged: the version of their format is missing", where()));
    bytes_->change(
        [](store::Change& change) { change.put_record(kFormatKey, std::as_bytes(std::span(&kDocumentVersion, 1))); });
  }
  if (version != kDocumentVersion)
    throw InputError(fmt::format("the documents in {} have format version {}, but this winnow reads version {}",
                                 where(), version, kDocumentVersion));
}

std::string Archive::what(const std::string& name) const {
  return fmt::format("the document {} in {}", printable(name), where());
}

AddedDocument::Outcome Archive::put(const Label& label, const DocumentHead& head, const engine::Sequence& sequence) {
  NewContent content;
  content.id = content_id(head.saved.model, head.saved.options, head.saved.transcript.tokens);
  StoredHead stored{head, {}};
  std::size_t bytes = 0;
  for (int layer = 0; layer < sequence.layers(); ++layer) {
    content.layer_bytes.push_back(cache::saved_bytes(sequence.lanes(layer)));
    bytes += content.layer_bytes.back();
    stored.sums.push_back(SummingSink(head.saved, layer, nullptr).sums());  // placeholder of the right size
  }
  content.head_bytes = stored.bytes().size();
  content.record = record_of(head.saved, new_number(), bytes + content.head_bytes, ms_since_1970());
  content.write_layer = [&](int layer, ByteSink& to) {
    SummingSink sink(head.saved, layer, &to);
    cache::save(sequence.lanes(layer), sink);
    stored.sums[layer] = sink.sums();
  };
  content.head = [&] { return stored.bytes(); };
  return put(label, content);
}

AddedDocument::Outcome Archive::put(const Label& label, const NewContent& content) {
  label.check();
  auto outcome = AddedDocument::Outcome::added;
  bytes_->change([&](store::Change& change) {
    if (!change.record(kContentPrefix + content.id)) {
      for (int layer = 0; layer < content.record.layers; ++layer) {
        change.add_value(content.record.layer_key(layer), content.layer_bytes[layer],
                         [&](ByteSink& to) { content.write_layer(layer, to); });
      }
      change.add_value(content.record.head_key(), content.head_bytes, [&](ByteSink& to) { to.write(content.head()); });
      change.put_record(kContentPrefix + content.id, content.record.bytes());
    }
    outcome = point(change, label, content.id);
  });
  return outcome;
}

bool Archive::name(const Label& label, const std::string& id, AddedDocument::Outcome& outcome) {
  label.check();
  if (!bytes_->record(kContentPrefix + id)) return false;
  bool there = false;
  bytes_->change([&](store::Change& change) {
    there = change.record(kContentPrefix + id).has_value();
    if (there) outcome = point(change, label, id);
  });
  return there;
}

/// Makes a name refer to stored content. A name that already referred to it keeps its time.
AddedDocument::Outcome Archive::point(store::Change& change, const Label& label, const std::string& id) const {
  const std::string key = kNamePrefix + label.name;
  const auto known = change.record(key);
  NameRecord record{id, label.tags, ms_since_1970()};
  if (!known) {
    change.put_record(key, record.bytes(label.name));
    return AddedDocument::Outcome::added;
  }
  const auto before = NameRecord::read(label.name, *known, what(label.name));
  if (before.id == id) record.added_ms = before.added_ms;
  change.put_record(key, record.bytes(label.name));
  if (before.id == id) return AddedDocument::Outcome::unchanged;
  drop_unnamed(change, {before.id});
  return AddedDocument::Outcome::replaced;
}

/// Removes those of these contents that no name refers to.
void Archive::drop_unnamed(store::Change& change, std::set<std::string> ids) const {
  for (const auto& [key, bytes] : change.records(kNamePrefix)) {
    const std::string name = key.substr(kNamePrefix.size());
    ids.erase(NameRecord::read(name, bytes, what(name)).id);
  }
  for (const auto& id : ids) {
    if (const auto found = change.record(kContentPrefix + id))
      drop_content(change, id, ContentRecord::read(*found, what(id)));
  }
}

void Archive::drop_content(store::Change& change, const std::string& id, const ContentRecord& content) {
  change.erase_value(content.head_key());
  for (int layer = 0; layer < content.layers; ++layer) change.erase_value(content.layer_key(layer));
  change.erase_record(kContentPrefix + id);
}

Archive::Found Archive::find(const std::string& name) const {
  for (int i = 0; i < kTries; ++i) {
    const auto named = bytes_->record(kNamePrefix + name);
    if (!named) fail_unknown(name, bytes_->records(kNamePrefix));
    Found found{NameRecord::read(name, *named, what(name)), {}};
    const auto content = bytes_->record(kContentPrefix + found.name.id);
    if (!content) continue;  // replaced between the two reads
    found.content = ContentRecord::read(*content, what(name));
    return found;
  }
  throw InputError(fmt::format("{} is damaged: its content is missing", what(name)));
}

/// The message does not name the store, because clients of a server read it, too.
void Archive::fail_unknown(const std::string& name, const store::Records& names) const {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> known;
  for (const auto& [key, bytes] : names) known.push_back(key.substr(kNamePrefix.size()));
  if (known.empty()) throw UnknownDocument(fmt::format("there is no document '{}': the store is empty", brief(name)));
  const auto* const near = policy::nearest(name, known);
  const auto some = std::span(known).first(std::min(kMost, known.size()));
  throw UnknownDocument(fmt::format("there is no document '{}': {} are '{}'{}", brief(name),
                                    near == nullptr ? "there" : fmt::format("did you mean '{}'? There", *near),
                                    fmt::join(some, "', '"), known.size() > kMost ? ", …" : ""));
}

DocumentInfo Archive::info_of(const std::string& name, const Found& found) const {
  const ContentRecord& c = found.content;
  DocumentInfo out;
  out.name = name;
  out.tags = found.name.tags;
  out.id = found.name.id;
  try {
    out.cache.spec = Spec::parse(c.spec);
    if (!c.budget.empty()) out.cache.budget = Budget::parse(c.budget);
    out.cache.kv_type = KvType::parse(c.kv_type);
  } catch (const UsageError& error) {
    throw InputError(fmt::format("{} is damaged: {}", what(name), error.what()));
  }
  out.model_name = c.model_name;
  out.model_arch = c.model_arch;
  out.model_hash = c.model_file;
  out.n_layer = c.layers;
  out.tokens = c.tokens;
  out.bytes = as_size(c.value_bytes);
  out.added = time_of(found.name.added_ms);
  out.used = time_of(std::max(c.used_ms, found.name.added_ms));
  return out;
}

std::vector<DocumentInfo> Archive::list() const {
  const auto all = bytes_->records("");
  std::vector<DocumentInfo> out;
  for (const auto& [key, record] : all) {
    check_kind(key, record);
    if (!key.starts_with(kNamePrefix)) continue;
    const std::string name = key.substr(kNamePrefix.size());
    Found found{NameRecord::read(name, record, what(name)), {}};
    const auto content = all.find(kContentPrefix + found.name.id);
    if (content == all.end()) throw InputError(fmt::format("{} is damaged: its content is missing", what(name)));
    found.content = ContentRecord::read(content->second, what(name));
    out.push_back(info_of(name, found));
  }
  return out;
}

/// Checks that a record without the key of a name is of another known kind: a name with a damaged key would otherwise
/// only be missing.
void Archive::check_kind(const std::string& key, const store::Bytes& record) const {
  if (key == kFormatKey || key.starts_with(kNamePrefix)) return;
  if (!key.starts_with(kContentPrefix))
    throw InputError(fmt::format("the documents in {} are damaged: a record is of an unknown kind", where()));
  ContentRecord::read(record, what(key.substr(kContentPrefix.size())));
}

DocumentInfo Archive::info(const std::string& name) const { return info_of(name, find(name)); }

std::shared_ptr<const Document> Archive::open(const std::string& name) const {
  return open_document(bytes_, find(name).content, what(name));
}

std::shared_ptr<const Document> Archive::open(const std::string& name, const engine::ModelIdentity& model) {
  const Found found = find(name);
  auto out = open_document(bytes_, found.content, what(name));
  engine::check_model(out->head().saved.model, model, what(name));
  note_use(found);
  return out;
}

/// Records a use. Failures are ignored, as in a read-only store.
void Archive::note_use(const Found& found) noexcept {
  const auto now = ms_since_1970();
  if (now - found.content.used_ms < kUseGrain) return;
  try {
    bytes_->change([&](store::Change& change) {
      const auto there = change.record(kContentPrefix + found.name.id);
      if (!there) return;
      auto content = ContentRecord::read(*there, where());
      content.used_ms = now;
      change.put_record(kContentPrefix + found.name.id, content.bytes());
    });
  } catch (const std::exception&) {
    return;
  }
}

void Archive::remove(std::span<const std::string> names) {
  bytes_->change([&](store::Change& change) {
    for (const auto& name : names) {  // before any change, so that the message can list all names
      if (!change.record(kNamePrefix + name)) fail_unknown(name, change.records(kNamePrefix));
    }
    std::set<std::string> ids;
    for (const auto& name : names) {
      const auto found = change.record(kNamePrefix + name);
      if (!found) continue;  // listed twice
      try {
        ids.insert(NameRecord::read(name, *found, what(name)).id);
      } catch (const InputError&) {  // damaged: the name is removed, its content stays
      }
      change.erase_record(kNamePrefix + name);
    }
    drop_unnamed(change, std::move(ids));
  });
}

}  // namespace winnow::documents
