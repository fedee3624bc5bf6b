// SPDX-License-Identifier: Apache-2.0
#include "documents/records.h"

#include <spdlog/fmt/fmt.h>

#include <cstring>
#include <random>

#include "base/as_size.h"
#include "base/hash.h"
#include "winnow/error.h"

namespace winnow::documents {

namespace {

/// Version at the beginning of a record or head, and seed of the checksum at its end.
struct Seal {
  std::uint32_t version = kDocumentVersion;
  std::uint64_t seed = 0;
};

Seal seal_of_name(const std::string& name) { return {kNameVersion, hash_of(std::as_bytes(std::span(name)))}; }

/// Appends the checksum.
store::Bytes sealed(MemorySink& contents, const Seal& seal = {}) {
  put(contents, hash_of(contents.bytes(), seal.seed));
  return contents.bytes();
}

/// Verifies the seal, and returns the result of read(cursor), which must read to the end.
template <class Read>
auto unsealed(std::span<const std::byte> bytes, const std::string& what, const Read& read, const Seal& seal = {}) {
  std::uint64_t sum = 0;
  if (bytes.size() < sizeof(sum)) throw InputError(fmt::format("{} is damaged: it has {} bytes", what, bytes.size()));
  const auto contents = bytes.first(bytes.size() - sizeof(sum));
  std::memcpy(&sum, bytes.data() + contents.size(), sizeof(sum));
  if (const auto is = hash_of(contents, seal.seed); is != sum)
    throw InputError(fmt::format("{} is damaged: its checksum is {:016x}, expected {:016x}", what, is, sum));
  const MemorySource source(contents, what);
  ByteCursor cursor(source, 0, contents.size());
  const auto version = cursor.take<std::uint32_t>("the format's version");
  if (version != seal.version)
    throw InputError(
        fmt::format("{} has format version {}, but this winnow reads version {}", what, version, seal.version));
  auto out = read(cursor);
  cursor.finish("the record");
  return out;
}

bool has_version(std::span<const std::byte> bytes, std::uint32_t version) {
  return bytes.size() >= sizeof(version) && std::memcmp(bytes.data(), &version, sizeof(version)) == 0;
}

constexpr std::int32_t kMostHeads = 1 << 12;       ///< keeps sizes below 2^63
constexpr std::int32_t kMostDimensions = 1 << 16;  ///< of a head

void check_shape(const engine::ModelIdentity& model, const ByteCursor& from) {
  for (const auto& heads : model.heads) {
    if (heads.kv_heads > kMostHeads || heads.head_dim > kMostDimensions)
      from.fail(
          fmt::format("its model has {} KV heads of {} dimensions, which is too many", heads.kv_heads, heads.head_dim));
  }
}

LayerSums read_sums(ByteCursor& from, const engine::SavedHead& head, int layer) {
  LayerSums out;
  out.size = from.take<std::uint64_t>("a layer's size");
  out.table = from.take<std::uint64_t>("a layer's checksum");
  const std::size_t blocks = is_plain(head) ? as_size(BlockLayout{head.seen}.blocks()) : 0;
  if (blocks > from.left() / sizeof(std::uint64_t))
    from.fail(fmt::format("the checksums of {} blocks do not fit in {} bytes", blocks, from.left()));
  out.blocks.resize(blocks);
  from.read(std::span<std::uint64_t>(out.blocks), "the blocks' checksums");
  if (!is_plain(head)) return out;
  if (const auto size = PlainLayer(head, layer).size(); out.size != size)
    from.fail(fmt::format("a layer of {} tokens has {} bytes, expected {}", head.seen, out.size, size));
  return out;
}

std::string key_of(std::uint64_t number, const std::string& part) { return fmt::format("{:016x}{}", number, part); }

}  // namespace

std::string content_id(const engine::ModelIdentity& model, const CacheOptions& options, std::span<const Token> tokens) {
  MemorySink sink;
  put(sink, kDocumentVersion);
  put(sink, model.file);
  put(sink, model.rope);
  put(sink, std::string_view(options.spec.print_full()));
  put(sink, std::string_view(options.budget ? options.budget->print() : ""));
  put(sink, std::string_view(options.kv_type.print()));
  put(sink, tokens);
  return fmt::format("{:016x}{:016x}", hash_of(sink.bytes(), 1), hash_of(sink.bytes(), 2));
}

store::Bytes NameRecord::bytes(const std::string& name) const {
  MemorySink to;
  put(to, kNameVersion);
  put(to, std::string_view(id));
  put(to, static_cast<std::uint32_t>(tags.size()));
  for (const auto& tag : tags) put(to, std::string_view(tag));
  put(to, added_ms);
  return sealed(to, seal_of_name(name));
}

NameRecord NameRecord::read(const std::string& name, std::span<const std::byte> bytes, const std::string& what) {
  const auto fields = [](ByteCursor& from) {
    NameRecord out;
    out.id = from.text("the content");
    const auto count = from.take<std::uint32_t>("the number of tags");
    for (std::uint32_t i = 0; i < count; ++i) out.tags.push_back(from.text("a tag"));
    out.added_ms = from.take<std::int64_t>("when it was added");
    return out;
  };
  return unsealed(bytes, what, fields, has_version(bytes, kDocumentVersion) ? Seal() : seal_of_name(name));
}

store::Bytes ContentRecord::bytes() const {
  MemorySink to;
  put(to, kDocumentVersion);
  put(to, number);
  for (const auto* const text : {&spec, &budget, &kv_type, &model_name, &model_arch}) put(to, std::string_view(*text));
  put(to, model_file);
  put(to, layers);
  put(to, tokens);
  put(to, value_bytes);
  put(to, added_ms);
  put(to, used_ms);
  return sealed(to);
}

ContentRecord ContentRecord::read(std::span<const std::byte> bytes, const std::string& what) {
  return unsealed(bytes, what, [](ByteCursor& from) {
    ContentRecord out;
    out.number = from.take<std::uint64_t>("its number");
    for (auto* const text : {&out.spec, &out.budget, &out.kv_type, &out.model_name, &out.model_arch})
      *text = from.text("its cache options and model");
    out.model_file = from.take<std::uint64_t>("the model's hash");
    out.layers = from.take<std::int32_t>("the number of layers");
    out.tokens = from.take<std::int32_t>("the number of tokens");
    out.value_bytes = from.take<std::uint64_t>("the number of bytes");
    out.added_ms = from.take<std::int64_t>("when it was added");
    out.used_ms = from.take<std::int64_t>("when it was used");
    return out;
  });
}

std::string ContentRecord::head_key() const { return key_of(number, "head"); }
std::string ContentRecord::layer_key(int layer) const { return key_of(number, fmt::format("{:04x}", layer)); }

ContentRecord record_of(const engine::SavedHead& head, std::uint64_t number, std::uint64_t value_bytes,
                        std::int64_t now) {
  const auto& o = head.options;
  return {number,
          o.spec.print(),
          o.budget ? o.budget->print() : "",
          o.kv_type.print(),
          head.model.name,
          head.model.arch,
          head.model.file,
          head.model.layers,
          head.seen,
          value_bytes,
          now,
          now};
}

store::Bytes StoredHead::bytes() const {
  MemorySink written;
  head.write(written);
  MemorySink to;
  put(to, kDocumentVersion);
  put(to, static_cast<std::uint64_t>(written.bytes().size()));
  to.write(written.bytes());
  for (const auto& layer : sums) {
    put(to, layer.size);
    put(to, layer.table);
    put(to, std::span<const std::uint64_t>(layer.blocks));
  }
  return sealed(to);
}

StoredHead StoredHead::read(std::span<const std::byte> bytes, const std::string& what) {
  return unsealed(bytes, what, [](ByteCursor& from) {
    const auto length = from.take<std::uint64_t>("the length of the head");
    if (length > from.left()) from.fail(fmt::format("its head has {} bytes, {} are left", length, from.left()));
    ByteCursor written = from.part(as_size(length), "the head");
    StoredHead out;
    out.head = DocumentHead::read(written);
    check_shape(out.head.saved.model, from);
    for (int layer = 0; layer < out.head.saved.model.layers; ++layer)
      out.sums.push_back(read_sums(from, out.head.saved, layer));
    return out;
  });
}

std::uint64_t new_number() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32U) | random();
}

}  // namespace winnow::documents
