// A document in a file of its own: its label, its head, its layers.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <random>

#include "base/file.h"
#include "cache/sections.h"
#include "multi/archive.h"
#include "multi/stored_document.h"
#include "winnow/error.h"

namespace winnow::multi {

namespace {

constexpr cache::FileFormat kDocumentFormat{
    {'w', 'i', 'n', 'n', 'o', 'w', 'd', 'c'}, kDocumentVersion, "an exported document"};

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

store::Lease whole_value(const store::ByteStore& from, const std::string& key, const std::string& what) {
  auto found = from.value(key, std::span(&store::kWhole, 1));
  if (!found) throw InputError(fmt::format("{} is gone: somebody has removed or replaced it", what));
  return std::move(*found);
}

}  // namespace

void Archive::export_to(const std::string& name, const std::string& path) const {
  const Found found = find(name);
  const StoredHead stored = read_head(*bytes_, found.content, what(name));
  const store::Bytes label = label_bytes({name, found.name.tags});
  const store::Bytes head = stored.bytes();
  std::vector<std::size_t> lengths{label.size(), head.size()};
  for (const auto& layer : stored.sums) lengths.push_back(static_cast<std::size_t>(layer.size));
  ReplacingFile file(path);
  cache::SectionWriter writer(file, kDocumentFormat, lengths);
  writer.section([&](ByteSink& to) { to.write(label); });
  writer.section([&](ByteSink& to) { to.write(head); });
  for (int layer = 0; layer < found.content.layers; ++layer) {
    const std::string layer_name = fmt::format("layer {} of {}", layer, what(name));
    const auto value = whole_value(*bytes_, found.content.layer_key(layer), layer_name);
    check_layer(stored.head.saved, layer, value.parts.front(), stored.sums[static_cast<std::size_t>(layer)],
                layer_name);
    writer.section([&](ByteSink& to) { to.write(value.parts.front()); });
  }
  file.commit();
}

AddedDocument::Outcome Archive::import_from(const std::string& path, Label& label) {
  const FileSource file(path);
  const cache::SectionReader reader(file, kDocumentFormat);
  if (reader.count() < 2) throw InputError(fmt::format("{} is damaged: it has {} sections", path, reader.count()));
  reader.verify(kLabelSection, "its label");
  Label own = read_label(reader.section(kLabelSection));
  if (label.name.empty()) label.name = own.name;
  label.tags = std::move(own.tags);
  const store::Bytes head = contents(reader, kHeadSection, "its head");
  const StoredHead stored = StoredHead::read(head, path);
  const auto& saved = stored.head.saved;
  if (reader.count() != layer_section(saved.model.layers))
    throw InputError(
        fmt::format("{} is damaged: it has {} sections for {} layers", path, reader.count(), saved.model.layers));

  NewContent content;
  std::size_t bytes = head.size();
  for (int layer = 0; layer < saved.model.layers; ++layer) {
    content.layer_bytes.push_back(static_cast<std::size_t>(stored.sums[static_cast<std::size_t>(layer)].size));
    bytes += content.layer_bytes.back();
  }
  content.id = content_id(saved.model, saved.options, saved.transcript.tokens);
  content.record = record_of(saved, new_number(), bytes, now_ms());
  content.write_layer = [&](int layer, ByteSink& to) {
    const std::string layer_name = fmt::format("layer {} of {}", layer, path);
    const auto value = contents(reader, layer_section(layer), fmt::format("layer {}", layer));
    check_layer(saved, layer, value, stored.sums[static_cast<std::size_t>(layer)], layer_name);
    to.write(value);
  };
  content.head_bytes = head.size();
  content.head = [&] { return head; };
  return put(label, content);
}

}  // namespace winnow::multi
