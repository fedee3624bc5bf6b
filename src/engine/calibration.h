// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/byte_stream.h"
#include "cache/sections.h"
#include "engine/model_identity.h"
#include "model/hparams.h"
#include "winnow/policy/layer.h"

/// Facts about a model, measured on a text of its user. The file format is in docs/file-formats.md.
namespace winnow::engine {

inline constexpr cache::FileFormat kCalibrationFormat{
    {'w', 'i', 'n', 'n', 'o', 'w', 'c', 'l'}, 3, "a calibration written by winnow calibrate"};

using policy::LayerCalibration;

struct Calibration {
  std::vector<LayerCalibration> layers = {};  ///< [layers without a window]
};

/// Writes the calibration and its model's identity. Throws the sink's errors.
void write_calibration(ByteSink& to, const Calibration& calibration, const ModelIdentity& model);

/// Throws InputError if the file is damaged or belongs to another model.
Calibration read_calibration(const ByteSource& from, const ModelIdentity& model, const model::Hparams& hparams);

}  // namespace winnow::engine
