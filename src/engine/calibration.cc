// SPDX-License-Identifier: Apache-2.0
#include "engine/calibration.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

std::vector<float> read_numbers(ByteCursor& from, const std::string& name) {
  const auto count = from.take<std::uint32_t>("the number of a layer's numbers");
  if (count > from.left() / sizeof(float))
    from.fail(fmt::format("a layer's {} claim {} numbers, but only {} bytes are left", name, count, from.left()));
  std::vector<float> out(count);
  from.read(std::span<float>(out), name);
  for (const float x : out) {
    if (!std::isfinite(x)) from.fail(fmt::format("a layer's {} include {}, expected finite numbers", name, x));
  }
  return out;
}

LayerCalibration read_layer(ByteCursor& from) {
  LayerCalibration::Facts facts;
  for (auto left = from.take<std::uint32_t>("the number of a layer's facts"); left > 0; --left) {
    const std::string name = from.text("the name of a layer's facts");
    auto numbers = read_numbers(from, brief(name));
    if (!facts.emplace(name, std::move(numbers)).second) from.fail(fmt::format("a layer has {} twice", brief(name)));
  }
  from.finish("the layer");
  return LayerCalibration(std::move(facts));
}

}  // namespace

void write_calibration(ByteSink& to, const Calibration& calibration, const ModelIdentity& model) {
  std::vector<MemorySink> sections(calibration.layers.size() + 1);
  model.write(sections[0]);
  put(sections[0], static_cast<std::uint32_t>(calibration.layers.size()));
  for (std::size_t l = 0; l < calibration.layers.size(); ++l) {
    const auto& facts = calibration.layers[l].facts();
    auto& layer = sections[l + 1];
    put(layer, static_cast<std::uint32_t>(facts.size()));
    for (const auto& [name, numbers] : facts) {
      put(layer, std::string_view(name));
      put(layer, static_cast<std::uint32_t>(numbers.size()));
      put(layer, std::span<const float>(numbers));
    }
  }
  std::vector<std::size_t> lengths;
  for (const auto& section : sections) lengths.push_back(section.bytes().size());
  cache::SectionWriter writer(to, kCalibrationFormat, lengths);
  for (const auto& section : sections) writer.section([&](ByteSink& sink) { sink.write(section.bytes()); });
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
    head.fail(fmt::format("it has {} sections for {} layers, but the model has {} layers without a window",
                          reader.count(), layers, hparams.n_global));
  }
  Calibration out;
  for (int l = 0; l < hparams.n_kv_layer; ++l) {
    if (hparams.layer(l).window > 0) continue;
    const int section = hparams.place_of[l] + 1;
    reader.verify(section, fmt::format("layer {}", l));
    ByteCursor contents = reader.section(section);
    out.layers.push_back(read_layer(contents));
  }
  return out;
}

}  // namespace winnow::engine
