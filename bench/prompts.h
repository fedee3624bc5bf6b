#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "winnow/model.h"

namespace winnow::bench {

/// The "prompt" of the first lines of some .jsonl files; longer ones than `most` tokens are cut in the middle.
inline std::vector<std::vector<Token>> prompts_of(const Model& model, const std::vector<std::string>& files, int of_each, int most) {
  std::vector<std::vector<Token>> out;
  for (const auto& path : files) {
    std::ifstream file(path);
    std::string line;
    for (int i = 0; i < of_each && std::getline(file, line); ++i) {
      auto tokens = model.tokenize(nlohmann::json::parse(line).at("prompt").get<std::string>());
      if (tokens.size() > static_cast<std::size_t>(most)) tokens.erase(tokens.begin() + most / 2, tokens.end() - (most - most / 2));
      out.push_back(std::move(tokens));
    }
  }
  return out;
}

}  // namespace winnow::bench
