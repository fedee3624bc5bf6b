// SPDX-License-Identifier: Apache-2.0
// Encoding of a document's head: docs/file-formats.md.
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <initializer_list>
#include <stdexcept>

#include "base/as_size.h"
#include "documents/document.h"

namespace winnow::documents {

namespace {

/// Sizes of a layer's facts, in numbers.
struct FactSizes {
  std::size_t local_query;
  std::size_t edge_key;
  std::size_t block_keys;
  std::size_t representatives;
  std::size_t received;
};

/// A product of numbers that were read, or `most` + 1 if it is larger.
std::size_t product(std::initializer_list<std::int32_t> factors, std::size_t most) {
  std::size_t out = 1;
  for (const auto factor : factors) {
    if (factor == 0) return 0;
    if (out > most / as_size(factor)) return most + 1;
    out *= as_size(factor);
  }
  return out;
}

FactSizes sizes_of(const engine::SavedHead& saved, int layer, std::size_t most) {
  const auto& m = saved.model.of_layer(layer);
  const auto middle = static_cast<std::int32_t>(BlockLayout{saved.seen}.middle());
  return {product({m.group, m.kv_heads, m.head_dim}, most), product({m.kv_heads, m.head_dim}, most),
          product({middle, m.kv_heads, m.head_dim}, most), as_size(middle), product({m.kv_heads, saved.seen}, most)};
}

void write_floats(ByteSink& to, const std::vector<float>& values, std::size_t size, const char* what) {
  if (values.size() != size)
    throw std::logic_error(fmt::format("a document has {} numbers for {}, expected {}", values.size(), what, size));
  put(to, std::span<const float>(values));
}

std::vector<float> read_floats(ByteCursor& from, std::size_t size, const char* what) {
  if (size > from.left() / sizeof(float))
    from.fail(fmt::format("{} numbers for {} do not fit into the {} bytes left", size, what, from.left()));
  std::vector<float> out(size);
  from.read(std::span<float>(out), what);
  for (const float value : out) {
    if (!std::isfinite(value)) from.fail(fmt::format("a number of {} is {}, expected a finite one", what, value));
  }
  return out;
}

void write_facts(ByteSink& to, const LayerFacts& facts, const FactSizes& sizes) {
  write_floats(to, facts.local_query, sizes.local_query, "the local query");
  write_floats(to, facts.edge_key, sizes.edge_key, "the edge key");
  write_floats(to, facts.block_keys, sizes.block_keys, "the blocks' keys");
  if (facts.representatives.size() != sizes.representatives)
    throw std::logic_error("a document does not have one representative for each middle block");
  for (const auto& r : facts.representatives) {
    put(to, r.token);
    put(to, r.exponent);
    put(to, r.attention);
  }
  put(to, static_cast<std::uint32_t>(facts.outliers.size()));
  put(to, std::span<const std::int32_t>(facts.outliers));
  write_floats(to, facts.received, sizes.received, "the tokens' received attention");
}

Representative read_representative(ByteCursor& from, const BlockLayout& layout, int block) {
  Representative out;
  out.token = from.take<std::int32_t>("a representative");
  out.exponent = from.take<float>("a representative's exponent");
  out.attention = from.take<float>("a representative's attention");
  if (out.token < layout.begin(block) || out.token >= layout.end(block))
    from.fail(fmt::format("token {} cannot represent block {}, which has tokens {} to {}", out.token, block,
                          layout.begin(block), layout.end(block) - 1));
  if (!(std::isfinite(out.exponent) && out.exponent >= 0 && std::isfinite(out.attention) && out.attention >= 0))
    from.fail(
        fmt::format("the representative of block {} has exponent {} and attention {}, expected finite numbers from 0",
                    block, out.exponent, out.attention));
  return out;
}

std::vector<std::int32_t> read_outliers(ByteCursor& from, int tokens) {
  const auto count = from.take<std::uint32_t>("the number of outliers");
  if (count > static_cast<std::uint32_t>(tokens))
    from.fail(fmt::format("it has {} outliers among {} tokens", count, tokens));
  if (count > from.left() / sizeof(std::int32_t))
    from.fail(fmt::format("{} outliers do not fit into the {} bytes left", count, from.left()));
  std::vector<std::int32_t> out(count);
  from.read(std::span<std::int32_t>(out), "the outliers");
  std::int32_t before = -1;
  for (const auto token : out) {
    if (token <= before || token >= tokens)
      from.fail(fmt::format("outlier {} follows {}, expected ascending tokens below {}", token, before, tokens));
    before = token;
  }
  return out;
}

LayerFacts read_facts(ByteCursor& from, const BlockLayout& layout, const FactSizes& sizes) {
  LayerFacts out;
  out.local_query = read_floats(from, sizes.local_query, "the local query");
  out.edge_key = read_floats(from, sizes.edge_key, "the edge key");
  out.block_keys = read_floats(from, sizes.block_keys, "the blocks' keys");
  for (int i = 0; i < layout.middle(); ++i)
    out.representatives.push_back(read_representative(from, layout, layout.initial() + i));
  out.outliers = read_outliers(from, layout.tokens);
  out.received = read_floats(from, sizes.received, "the tokens' received attention");
  return out;
}

}  // namespace

void DocumentHead::write(ByteSink& to) const {
  MemorySink head;
  saved.write(head);
  put(to, static_cast<std::uint32_t>(saved.model.layers));
  put(to, static_cast<std::uint32_t>(head.bytes().size()));
  to.write(head.bytes());
  put(to, static_cast<std::uint32_t>(layers.size()));
  for (std::size_t i = 0; i < layers.size(); ++i)
    write_facts(to, layers[i], sizes_of(saved, static_cast<int>(i), SIZE_MAX - 1));
}

DocumentHead DocumentHead::read(ByteCursor& from) {
  DocumentHead out;
  const auto layers = from.take<std::uint32_t>("the number of layers");
  if (layers > from.left())
    from.fail(fmt::format("it claims {} layers, but only {} bytes are left", layers, from.left()));
  const auto bytes = from.take<std::uint32_t>("the length of its head");
  ByteCursor saved = from.part(bytes, "its head");
  constexpr int kOtherSections = 2;  // of a saved cache: head and logits
  out.saved = engine::SavedHead::read(saved, static_cast<int>(layers) + kOtherSections);
  if (out.saved.transcript.tokens.size() != as_size(out.saved.seen))
    from.fail(fmt::format("it has {} tokens, but {} were read", out.saved.transcript.tokens.size(), out.saved.seen));

  const auto facts = from.take<std::uint32_t>("the number of layers with facts");
  if (facts != 0 && facts != layers) from.fail(fmt::format("{} of {} layers have facts", facts, layers));
  if (facts != 0 && !(out.saved.options.spec == Spec()))
    from.fail(fmt::format("it was compressed by {}, but has facts", out.saved.options.spec.print()));
  for (std::uint32_t i = 0; i < facts; ++i)
    out.layers.push_back(read_facts(from, out.layout(), sizes_of(out.saved, static_cast<int>(i), from.left())));
  from.finish("its facts");
  return out;
}

}  // namespace winnow::documents
