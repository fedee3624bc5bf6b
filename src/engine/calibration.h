// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/byte_stream.h"
#include "cache/sections.h"
#include "engine/model_identity.h"
#include "model/hparams.h"
#include "winnow/policy/method.h"

/// What a model does on texts of its user, in a file: docs/file-formats.md.
namespace winnow::engine {

inline constexpr cache::FileFormat kCalibrationFormat{
    {'w', 'i', 'n', 'n', 'o', 'w', 'c', 'l'}, 2, "a calibration that winnow calibrate has written"};

/// What is known of one layer without a window: its queries, and a linear map of the row that its query, key and value
/// are made of, which says how much a token's entry will matter.
struct LayerCalibration {
  std::vector<float> weights = {};       ///< [H_kv][n_embd]
  std::vector<float> bias = {};          ///< [H_kv]
  policy::QueryStatistics queries = {};  ///< of all layers that read its keys

  /// Of one such row, [n_embd].
  float score(int kv_head, const float* row) const;
  bool operator==(const LayerCalibration&) const = default;
};

struct Calibration {
  std::vector<LayerCalibration> layers = {};  ///< [layers without a window]
};

/// Writes it with the model that it belongs to. Throws what the sink throws.
void write_calibration(ByteSink& to, const Calibration& calibration, const ModelIdentity& model);

/// Throws InputError when it is damaged or another model's.
Calibration read_calibration(const ByteSource& from, const ModelIdentity& model, const model::Hparams& hparams);

}  // namespace winnow::engine
