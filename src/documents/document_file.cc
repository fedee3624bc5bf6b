// SPDX-License-Identifier: Apache-2.0
// A document exported to a file: its label, its head, its layers.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <random>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/file.h"
#include "cache/sections.h"
#include "documents/archive.h"
#include "documents/stored_document.h"
#include "winnow/error.h"

namespace winnow::documents {

namespace {

constexpr int kLabelSection = 0;
constexpr int kHeadSection = 1;
constexpr int layer_section(int layer) { return layer + 2; }

store::Bytes label_bytes(const Label& label) {
  MemorySink to;
  put(to, std::string_view(label.name));
  put(to, static_cast<std::uint32_t>(label.tags.size()));
  for (const auto& tag : label.tags) put(to, std::string_view(tag));
  return to.bytes();
}

Label read_label(ByteCursor from) {
  Label out;
  out.name = from.text("the name");
  const auto tags = from.take<std::uint32_t>("the number of tags");
  for (std::uint32_t i = 0; i < tags; ++i) out.tags.push_back(from.text("a tag"));
  from.finish("the label");
  return out;
}

store::Bytes contents(const cache::SectionReader& reader, int section, const std::string& what) {
  reader.verify(section, what);
  ByteCursor from = reader.section(section);
  store::Bytes out(from.left());
  from.read(std::span<std::byte>(out), what);
  return out;
}

/// A file written by export_to(). Throws InputError if it is another file, truncated or damaged.
class ExportedDocument {
 public:
  explicit ExportedDocument(const std::string& path) : file_(path), reader_(file_, kDocumentFormat) {
    if (reader_.count() < layer_section(0)) fail(fmt::format("it has {} sections", reader_.count()));
    reader_.verify(kLabelSection, "its label");
    label_ = read_label(reader_.section(kLabelSection));
    check_label();
    head_ = contents(reader_, kHeadSection, "its head");
    stored_ = StoredHead::read(head_, path);
    if (reader_.count() != layer_section(layers()))
      fail(fmt::format("it has {} sections for {} layers", reader_.count(), layers()));
  }

  const Label& label() const { return label_; }
  int layers() const { return stored_.head.saved.model.layers; }
  /// A layer's bytes.
  store::Bytes layer(int layer) const {
    auto out = contents(reader_, layer_section(layer), fmt::format("layer {}", layer));
    check_layer(stored_.head.saved, layer, out, stored_.sums[layer],
                fmt::format("layer {} of {}", layer, file_.name()));
    return out;
  }
  /// The content to write into a store. Must not outlive this.
  NewContent content() const {
    const auto& saved = stored_.head.saved;
    NewContent out;
    out.head_bytes = head_.size();
    std::size_t bytes = out.head_bytes;
    for (const auto& sums : stored_.sums) bytes += out.layer_bytes.emplace_back(as_size(sums.size));
    out.id = content_id(saved.model, saved.options, saved.transcript.tokens);
    out.record = record_of(saved, new_number(), bytes, ms_since_1970());
    out.write_layer = [this](int i, ByteSink& to) { to.write(layer(i)); };
    out.head = [this] { return head_; };
    return out;
  }

 private:
  /// Reports a bad name as a fault of the file, not of the user.
  void check_label() const {
    try {
      label_.check();
    } catch (const UsageError& error) {
      fail(error.what());
    }
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw InputError(fmt::format("{} is damaged: {}", file_.name(), why));
  }

  FileSource file_;
  cache::SectionReader reader_;
  Label label_;
  store::Bytes head_;
  StoredHead stored_;
};

store::Lease whole_value(const store::ByteStore& from, const std::string& key, const std::string& what) {
  auto found = from.value(key, std::span(&store::kWhole, 1));
  if (!found) throw InputError(fmt::format("{} is gone: it was removed or replaced meanwhile", what));
  return std::move(*found);
}

}  // namespace

void Archive::export_to(const std::string& name, const std::string& path) const {
  const Found found = find(name);
  const StoredHead stored = read_head(*bytes_, found.content, what(name));
  const store::Bytes label = label_bytes({name, found.name.tags});
  const store::Bytes head = stored.bytes();
  std::vector<std::size_t> lengths{label.size(), head.size()};
  for (const auto& layer : stored.sums) lengths.push_back(as_size(layer.size));
  ReplacingFile file(path, Readers::owner, kDocumentFormat.kind());
  cache::SectionWriter writer(file, kDocumentFormat, lengths);
  writer.section([&](ByteSink& to) { to.write(label); });
  writer.section([&](ByteSink& to) { to.write(head); });
  for (int layer = 0; layer < found.content.layers; ++layer) {
    const std::string layer_name = fmt::format("layer {} of {}", layer, what(name));
    const auto value = whole_value(*bytes_, found.content.layer_key(layer), layer_name);
    check_layer(stored.head.saved, layer, value.parts.front(), stored.sums[layer], layer_name);
    writer.section([&](ByteSink& to) { to.write(value.parts.front()); });
  }
  file.commit();
}

AddedDocument::Outcome Archive::import_from(const std::string& path, Label& label) {
  const ExportedDocument file(path);
  if (label.name.empty()) label.name = file.label().name;
  label.tags = file.label().tags;
  return put(label, file.content());
}

void check_exported(const std::string& path, const std::string& name) {
  const ExportedDocument file(path);
  Label{name.empty() ? file.label().name : name, file.label().tags}.check();
  for (int layer = 0; layer < file.layers(); ++layer) file.layer(layer);
}

}  // namespace winnow::documents
