// SPDX-License-Identifier: Apache-2.0
#include "engine/calibration.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <span>

#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

std::size_t bytes_of(const LayerCalibration& layer) {
  return (layer.weights.size() + layer.bias.size() + layer.queries.mean.size() + layer.queries.mean_lengths.size()) *
         sizeof(float);
}

void read_numbers(std::vector<float>& to, std::size_t count, ByteCursor& from, const char* what) {
  if (count > from.left() / sizeof(float))
    from.fail(fmt::format("{} are {} numbers, {} bytes are left", what, count, from.left()));
  to.resize(count);
  from.read(std::span<float>(to), what);
  for (const float x : to) {
    if (!std::isfinite(x)) from.fail(fmt::format("{} have a number that is {}", what, x));
  }
}

}  // namespace

void write_calibration(ByteSink& to, const Calibration& calibration, const ModelIdentity& model) {
  MemorySink head;
  model.write(head);
  put(head, static_cast<std::uint32_t>(calibration.layers.size()));
  std::vector<std::size_t> lengths{head.bytes().size()};
  for (const auto& layer : calibration.layers) lengths.push_back(bytes_of(layer));
  cache::SectionWriter writer(to, kCalibrationFormat, lengths);
  writer.section([&](ByteSink& sink) { sink.write(head.bytes()); });
  for (const auto& layer : calibration.layers) {
    writer.section([&](ByteSink& sink) {
      put(sink, std::span<const float>(layer.weights));
      put(sink, std::span<const float>(layer.bias));
      put(sink, std::span<const float>(layer.queries.mean));
      put(sink, std::span<const float>(layer.queries.mean_lengths));
    });
  }
}

Calibration read_calibration(const ByteSource& from, const ModelIdentity& model, const model::Hparams& hparams) {
  const cache::SectionReader reader(from, kCalibrationFormat);
  if (reader.count() == 0) throw InputError(fmt::format("{} is damaged: it has no sections", from.name()));
  reader.verify(0, "its head");
  ByteCursor head = reader.section(0);
  check_model(ModelIdentity::read(head), model, from.name());
  const auto layers = head.take<std::uint32_t>("the number of layers");
  head.finish("its head");
  if (layers != static_cast<std::uint32_t>(hparams.n_global) || reader.count() != hparams.n_global + 1) {
    head.fail(fmt::format("it has {} sections for {} layers, the model has {} without a window", reader.count(), layers,
                          hparams.n_global));
  }
  Calibration out;
  for (int l = 0; l < hparams.n_kv_layer; ++l) {
    const auto& spec = hparams.layer(l);
    if (spec.window > 0) continue;
    const int section = hparams.place_of[l] + 1;
    reader.verify(section, fmt::format("layer {}", l));
    ByteCursor contents = reader.section(section);
    auto& layer = out.layers.emplace_back();
    read_numbers(layer.weights, as_size(spec.n_head_kv) * as_size(hparams.n_embd), contents, "a layer's weights");
    read_numbers(layer.bias, as_size(spec.n_head_kv), contents, "a layer's biases");
    const auto heads = as_size(spec.n_head);
    read_numbers(layer.queries.mean, heads * as_size(spec.head_dim), contents, "a layer's mean queries");
    read_numbers(layer.queries.mean_lengths, heads * as_size(spec.head_dim / 2), contents,
                 "mean lengths of a layer's queries");
    contents.finish("the layer");
  }
  return out;
}

}  // namespace winnow::engine
