// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace winnow::eval {

/// Identifies a measurement.
struct Key {
  std::string task;
  std::string id;
  std::string spec;    ///< canonical
  std::string budget;  ///< empty: none
  std::string kv_type;
  std::string protocol;
  std::string prompt_hash;       ///< of all tokens
  int max_prompt = 0;            ///< tokens to which longer prompts were cut; 0: none was
  std::string rope = {};         ///< RoPE options of the user's; empty: the file's
  std::string calibration = {};  ///< hash of the file that the method goes by; empty: it needs none
  auto operator<=>(const Key&) const = default;
};

struct Timings {
  double prefill_ms = 0;  ///< shared by all caches of the group
  double decode_ms = 0;   ///< likewise
};

/// One line of records.jsonl: the result of one cache on one sample.
struct Record {
  Key key;
  std::string model_hash;
  std::string answer;
  double score = 0;
  std::map<std::string, double> values;               ///< further figures of the task: "kl", "agreement"
  std::map<std::string, std::vector<double>> series;  ///< by layer, head or position; tables leave them out
  std::map<std::string, std::string> labels;          ///< of the sample
  std::string skipped;                                ///< why there is no score, or empty
  int prompt_tokens = 0;
  int cut_tokens = 0;      ///< of the prompt's middle, which was not read
  int beyond_context = 0;  ///< the context in tokens where prompt and answer are longer; 0: they are not
  double entries = 0;      ///< per KV head, mean, after prefill
  std::size_t bytes_held = 0;
  Timings timings;
  std::string group;   ///< records that were measured together, and are repeated together when one is missing
  int group_size = 1;  ///< records
};

/// The label of this name, or an empty text.
std::string label_of(const Record& record, const char* name);
nlohmann::ordered_json to_json(const Record& record);
/// As it stands in a file, without the end of the line.
std::string line_of(const Record& record);
/// Throws nlohmann::json::exception for what is no record.
Record record_of(const nlohmann::ordered_json& json);

}  // namespace winnow::eval
