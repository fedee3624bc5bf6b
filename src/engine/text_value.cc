// SPDX-License-Identifier: Apache-2.0
#include "engine/text_value.h"

#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>

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
std::vector<std::byte> beginning_of(const TextName& name, std::span<const std::size_t> sizes) {
  MemorySink to;
  to.write(std::as_bytes(std::span(kTextMagic)));
  winnow::put(to, kTextVersion);
  put(to, name.key);
  put(to, name.root);
  winnow::put(to, std::string_view(name.state));
  winnow::put(to, static_cast<std::uint32_t>(name.tokens.size()));
  winnow::put(to, std::span(name.tokens));
  winnow::put(to, static_cast<std::uint32_t>(sizes.size()));
  for (const std::size_t size : sizes) winnow::put(to, static_cast<std::uint64_t>(size));
  return to.bytes();
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

std::size_t value_head_bytes(const TextName& name, std::span<const std::size_t> sizes) {
  return beginning_of(name, sizes).size() + (sizes.size() + 1) * sizeof(std::uint64_t);
}

std::size_t value_bytes(const TextName& name, std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), value_head_bytes(name, sizes));
}

/// The last number is a checksum of all before it.
std::vector<std::byte> value_head(const TextName& name, std::span<const std::size_t> sizes,
                                  std::span<const std::uint64_t> sums) {
  MemorySink head;
  head.write(beginning_of(name, sizes));
  for (const std::uint64_t sum : sums) winnow::put(head, sum);
  winnow::put(head, hash_of(head.bytes()));
  return head.bytes();
}

std::optional<std::vector<std::uint64_t>> sums_of(std::span<const std::byte> value, const TextName& name,
                                                  std::span<const std::size_t> sizes) {
  const auto beginning = beginning_of(name, sizes);
  std::vector<std::uint64_t> sums(sizes.size() + 1);
  const auto bytes = std::as_writable_bytes(std::span(sums));
  if (value.size() < beginning.size() + bytes.size()) return std::nullopt;
  if (!std::equal(beginning.begin(), beginning.end(), value.begin())) return std::nullopt;
  std::ranges::copy(value.subspan(beginning.size(), bytes.size()), bytes.begin());
  const auto checked = value.first(beginning.size() + bytes.size() - sizeof(std::uint64_t));
  if (hash_of(checked) != sums.back()) return std::nullopt;
  sums.pop_back();
  return sums;
}

void write_value(const TextName& name, const LayerBytes& layers, ByteSink& to) {
  std::vector<std::uint64_t> sums;
  for (int layer = 0; layer < layers.layers(); ++layer) sums.push_back(hash_of(layers.layer(layer)));
  to.write(value_head(name, layers.sizes(), sums));
  for (int layer = 0; layer < layers.layers(); ++layer) to.write(layers.layer(layer));
}

bool read_value(std::span<const std::byte> value, const TextName& name, LayerBytes& layers) {
  if (value.size() != value_bytes(name, layers.sizes())) return false;
  const auto sums = sums_of(value, name, layers.sizes());
  if (!sums) return false;
  auto rest = value.subspan(value_head_bytes(name, layers.sizes()));
  for (int layer = 0; layer < layers.layers(); ++layer) {
    const auto to = layers.layer(layer);
    std::ranges::copy(rest.first(to.size()), to.begin());
    if (hash_of(to) != (*sums)[as_size(layer)]) return false;
    rest = rest.subspan(to.size());
  }
  return true;
}

}  // namespace winnow::engine
