// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/byte_stream.h"
#include "cache/sections.h"
#include "engine/model_identity.h"
#include "model/hparams.h"
#include "winnow/policy/layer.h"

/// What a model does on texts of its user, in a file: docs/file-formats.md.
namespace winnow::engine {

inline constexpr cache::FileFormat kCalibrationFormat{
    {'w', 'i', 'n', 'n', 'o', 'w', 'c', 'l'}, 3, "a calibration that winnow calibrate has written"};

using policy::LayerCalibration;

struct Calibration {
  std::vector<LayerCalibration> layers = {};  ///< [layers without a window]
};

/// Writes it with the model that it belongs to. Throws what the sink throws.
void write_calibration(ByteSink& to, const Calibration& calibration, const ModelIdentity& model);

/// Throws InputError when it is damaged or another model's.
Calibration read_calibration(const ByteSource& from, const ModelIdentity& model, const model::Hparams& hparams);

}  // namespace winnow::engine
