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
#include "engine/text_store.h"
#include "network/bf16_kernel.h"
#include "winnow/version.h"

namespace winnow::engine {

namespace {

constexpr std::string_view kTextMagic = "winnowTX";
constexpr std::uint32_t kTextVersion = 3;

TextKey key_of_bytes(std::span<const std::byte> bytes) { return {hash_of(bytes, 1), hash_of(bytes, 2)}; }

void put(ByteSink& to, const TextKey& key) {
  winnow::put(to, key.first);
  winnow::put(to, key.second);
}

/// Everything before the checksums. It does not depend on the layers' bytes.
std::vector<std::byte> beginning_of(const TextName& name, const LayerBytes& layers) {
  MemorySink to;
  to.write(std::as_bytes(std::span(kTextMagic)));
  winnow::put(to, kTextVersion);
  put(to, name.key);
  put(to, name.root);
  winnow::put(to, std::string_view(name.state));
  winnow::put(to, static_cast<std::uint32_t>(name.tokens.size()));
  winnow::put(to, std::span(name.tokens));
  winnow::put(to, static_cast<std::uint32_t>(layers.layers()));
  for (const std::size_t size : layers.sizes()) winnow::put(to, static_cast<std::uint64_t>(size));
  return to.bytes();
}

/// Bytes between the beginning and the layers' bytes: a checksum of each, and one of all before it.
std::size_t sums_bytes(const LayerBytes& layers) { return as_size(layers.layers() + 1) * sizeof(std::uint64_t); }

std::size_t bytes_of(std::size_t beginning, const LayerBytes& layers) {
  std::size_t out = beginning + sums_bytes(layers);
  for (const std::size_t size : layers.sizes()) out += size;
  return out;
}

}  // namespace

std::string TextKey::print() const { return fmt::format("{:016x}{:016x}", first, second); }

/// The chunk size is part of the key because attention is computed chunk by chunk.
SessionKey key_of(const Session::Impl& session) {
  MemorySink to;
  winnow::put(to, kTextVersion);
  for (const std::string_view version : {kVersion, ggml_version(), ggml_commit(), network::Bf16Kernel::library()})
    winnow::put(to, version);
  winnow::put(to, processor_kind());
  winnow::put(to, static_cast<std::uint32_t>(session.options.precision));
  winnow::put(to, static_cast<std::int32_t>(session.options.chunk));
  const auto model = identity_of(*session.model);
  model.write(to);
  MemorySink facts;
  if (session.calibration) write_calibration(facts, *session.calibration, model);
  return {key_of_bytes(to.bytes()), key_of_bytes(facts.bytes())};
}

std::vector<TextName> names_of(const SessionKey& session, std::string_view owner, std::span<const Token> text) {
  MemorySink to;
  put(to, session.rows);
  winnow::put(to, owner);
  TextName name;
  name.root = name.key = key_of_bytes(to.bytes());
  std::vector<TextName> out;
  for (constexpr auto kTokens = as_size(TextBlock::kTokens); text.size() >= kTokens; text = text.subspan(kTokens)) {
    MemorySink link;
    put(link, name.key);
    winnow::put(link, text.first(kTokens));
    name.key = key_of_bytes(link.bytes());
    name.tokens.assign(text.begin(), text.begin() + TextBlock::kTokens);
    out.push_back(name);
  }
  return out;
}

TextName name_of_state(const SessionKey& session, const TextName& block, const std::string& state) {
  MemorySink to;
  put(to, block.key);
  put(to, session.calibration);
  winnow::put(to, std::string_view(state));
  return {block.root, key_of_bytes(to.bytes()), state, block.tokens};
}

std::size_t value_bytes(const TextName& name, const LayerBytes& layers) {
  return bytes_of(beginning_of(name, layers).size(), layers);
}

void write_value(const TextName& name, const LayerBytes& layers, ByteSink& to) {
  MemorySink head;
  head.write(beginning_of(name, layers));
  for (int layer = 0; layer < layers.layers(); ++layer) winnow::put(head, hash_of(layers.layer(layer)));
  to.write(head.bytes());
  winnow::put(to, hash_of(head.bytes()));
  for (int layer = 0; layer < layers.layers(); ++layer) to.write(layers.layer(layer));
}

bool read_value(std::span<const std::byte> value, const TextName& name, LayerBytes& layers) {
  const auto beginning = beginning_of(name, layers);
  if (value.size() != bytes_of(beginning.size(), layers)) return false;
  if (!std::equal(beginning.begin(), beginning.end(), value.begin())) return false;
  const auto head = value.first(beginning.size() + sums_bytes(layers));
  const auto number_at = [&](std::size_t at) {
    std::uint64_t out = 0;
    std::memcpy(&out, value.data() + at, sizeof(out));
    return out;
  };
  const std::size_t last = head.size() - sizeof(std::uint64_t);
  if (number_at(last) != hash_of(head.first(last))) return false;
  auto rest = value.subspan(head.size());
  for (int layer = 0; layer < layers.layers(); ++layer) {
    const auto to = layers.layer(layer);
    std::ranges::copy(rest.first(to.size()), to.begin());
    if (hash_of(to) != number_at(beginning.size() + as_size(layer) * sizeof(std::uint64_t))) return false;
    rest = rest.subspan(to.size());
  }
  return true;
}

}  // namespace winnow::engine
