// SPDX-License-Identifier: Apache-2.0
#include "engine/text_value.h"

#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>

#include "base/as_size.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "engine/model_identity.h"
#include "winnow/version.h"

namespace winnow::engine {

namespace {

constexpr std::string_view kTextMagic = "winnowTX";
constexpr std::uint32_t kTextVersion = 1;

TextKey key_of_bytes(std::span<const std::byte> bytes) { return {hash_of(bytes, 1), hash_of(bytes, 2)}; }

void put(ByteSink& to, const TextKey& key) {
  winnow::put(to, key.first);
  winnow::put(to, key.second);
}

/// Everything before the checksums. It does not depend on the rows.
std::vector<std::byte> beginning_of(const TextName& name, const TextBlock& block) {
  MemorySink to;
  to.write(std::as_bytes(std::span(kTextMagic)));
  winnow::put(to, kTextVersion);
  put(to, name.key);
  put(to, name.root);
  winnow::put(to, static_cast<std::uint32_t>(block.tokens().size()));
  winnow::put(to, block.tokens());
  winnow::put(to, static_cast<std::uint32_t>(block.layers()));
  for (int layer = 0; layer < block.layers(); ++layer)
    winnow::put(to, static_cast<std::uint64_t>(block.rows(layer).size()));
  return to.bytes();
}

std::size_t beginning_bytes(const TextBlock& block) {
  return kTextMagic.size() + 2 * sizeof(TextKey) + 3 * sizeof(std::uint32_t) + block.tokens().size_bytes() +
         as_size(block.layers()) * sizeof(std::uint64_t);
}

/// Bytes before the rows.
std::size_t head_bytes(const TextBlock& block) {
  return beginning_bytes(block) + as_size(block.layers() + 1) * sizeof(std::uint64_t);
}

}  // namespace

std::string TextKey::print() const { return fmt::format("{:016x}{:016x}", first, second); }

/// The chunk size is part of the key because attention is computed chunk by chunk.
TextKey key_of(const Session::Impl& session) {
  MemorySink to;
  winnow::put(to, kTextVersion);
  for (const char* const version : {kVersion, ggml_version(), ggml_commit()})
    winnow::put(to, std::string_view(version));
  winnow::put(to, processor_kind());
  winnow::put(to, static_cast<std::uint32_t>(session.options.precision));
  winnow::put(to, static_cast<std::int32_t>(session.options.chunk));
  identity_of(*session.model).write(to);
  return key_of_bytes(to.bytes());
}

std::vector<TextName> names_of(const TextKey& session, std::string_view owner, std::span<const Token> text) {
  MemorySink to;
  put(to, session);
  winnow::put(to, owner);
  TextName name;
  name.root = name.key = key_of_bytes(to.bytes());
  std::vector<TextName> out;
  for (constexpr auto kTokens = as_size(TextBlock::kTokens); text.size() >= kTokens; text = text.subspan(kTokens)) {
    MemorySink link;
    put(link, name.key);
    winnow::put(link, text.first(kTokens));
    name.key = key_of_bytes(link.bytes());
    out.push_back(name);
  }
  return out;
}

std::size_t value_bytes(const TextBlock& block) {
  std::size_t out = head_bytes(block);
  for (int layer = 0; layer < block.layers(); ++layer) out += block.rows(layer).size();
  return out;
}

void write_value(const TextName& name, const TextBlock& block, ByteSink& to) {
  MemorySink head;
  head.write(beginning_of(name, block));
  for (int layer = 0; layer < block.layers(); ++layer) winnow::put(head, hash_of(block.rows(layer)));
  to.write(head.bytes());
  winnow::put(to, hash_of(head.bytes()));
  for (int layer = 0; layer < block.layers(); ++layer) to.write(block.rows(layer));
}

bool read_value(std::span<const std::byte> value, const TextName& name, TextBlock& block) {
  if (value.size() != value_bytes(block)) return false;
  const auto beginning = beginning_of(name, block);
  if (!std::equal(beginning.begin(), beginning.end(), value.begin())) return false;
  const auto head = value.first(head_bytes(block));
  const auto number_at = [&](std::size_t at) {
    std::uint64_t out = 0;
    std::memcpy(&out, value.data() + at, sizeof(out));
    return out;
  };
  const std::size_t last = head.size() - sizeof(std::uint64_t);
  if (number_at(last) != hash_of(head.first(last))) return false;
  auto rows = value.subspan(head.size());
  for (int layer = 0; layer < block.layers(); ++layer) {
    const auto to = block.rows(layer);
    std::memcpy(to.data(), rows.data(), to.size());
    if (hash_of(to) != number_at(beginning.size() + as_size(layer) * sizeof(std::uint64_t))) return false;
    rows = rows.subspan(to.size());
  }
  return true;
}

}  // namespace winnow::engine
