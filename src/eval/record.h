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
  int max_prompt = 0;            ///< longer prompts were cut to this number of tokens; 0: not cut
  std::string rope = {};         ///< the user's RoPE options; empty: the file's
  std::string calibration = {};  ///< hash of the calibration that the method uses; empty: it needs none
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
  int cut_tokens = 0;      ///< removed from the prompt's middle
  int beyond_context = 0;  ///< the context in tokens if prompt and answer exceed it, else 0
  double entries = 0;      ///< per KV head, mean, after prefill
  std::size_t bytes_held = 0;
  Timings timings;
  std::string group;  ///< name of the group of records that are measured together, and again together if one is missing
  int group_size = 1;  ///< records
};

/// The label with this name, or "".
std::string label_of(const Record& record, const char* name);
nlohmann::ordered_json to_json(const Record& record);
/// The line of a file, without its newline.
std::string line_of(const Record& record);
/// Throws nlohmann::json::exception if `json` is not a record.
Record record_of(const nlohmann::ordered_json& json);

}  // namespace winnow::eval
