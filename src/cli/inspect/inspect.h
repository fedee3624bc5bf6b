// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "winnow/model.h"

namespace winnow::cli {

enum class OutputForm : std::uint8_t { text, json };

/// Show a file's metadata. Where it is of no use as it is (a wrong checksum, a model that winnow does not run), that is
/// an error, thrown after what it is has been shown.
void show_saved(const std::string& path, OutputForm form);
void show_model(const std::string& path, OutputForm form);

/// `equal` where all layers have the same heads; else how many have which, in the order of their first ones.
std::string heads_of(std::vector<LayerInfo> layers, const std::string& equal);

/// Adds the heads of each layer where they differ.
void add_layers(nlohmann::ordered_json& to, const std::vector<LayerInfo>& layers);

/// As a document, bytes that are no UTF-8 replaced.
void show_json(const nlohmann::ordered_json& json);

}  // namespace winnow::cli
