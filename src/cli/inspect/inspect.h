// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "winnow/model.h"

namespace winnow::cli {

enum class OutputForm : std::uint8_t { text, json };

/// Show a file's metadata. For an unusable file (a wrong checksum, a model that winnow does not run), they throw after
/// showing it.
void show_saved(const std::string& path, OutputForm form);
void show_model(const std::string& path, OutputForm form);

/// `equal` if all layers have the same heads; else the number of layers with each, in the order of their first ones.
std::string heads_of(std::vector<LayerInfo> layers, const std::string& equal);

/// Adds the heads of each layer if they differ.
void add_layers(nlohmann::ordered_json& to, const std::vector<LayerInfo>& layers);

/// Prints a JSON document, replacing invalid UTF-8.
void show_json(const nlohmann::ordered_json& json);

}  // namespace winnow::cli
