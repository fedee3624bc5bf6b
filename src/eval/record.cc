// SPDX-License-Identifier: Apache-2.0
#include "eval/record.h"

#include <nlohmann/json.hpp>

#include "winnow/version.h"

namespace winnow::eval {

std::string label_of(const Record& record, const char* name) {
  const auto found = record.labels.find(name);
  return found == record.labels.end() ? "" : found->second;
}

nlohmann::ordered_json to_json(const Record& r) {
  using Json = nlohmann::ordered_json;
  Json out{{"task", r.key.task},         {"id", r.key.id},
           {"spec", r.key.spec},         {"budget", r.key.budget.empty() ? Json() : Json(r.key.budget)},
           {"kv_type", r.key.kv_type},   {"protocol", r.key.protocol},
           {"model_hash", r.model_hash}, {"prompt_hash", r.key.prompt_hash},
           {"answer", r.answer},         {"score", r.skipped.empty() ? Json(r.score) : Json()}};
  if (!r.skipped.empty()) out["skipped"] = r.skipped;
  if (!r.values.empty()) out["values"] = r.values;
  if (!r.series.empty()) out["series"] = r.series;
  if (!r.labels.empty()) out["labels"] = r.labels;
  if (!r.key.rope.empty()) out["rope"] = r.key.rope;
  if (!r.key.calibration.empty()) out["calibration"] = r.key.calibration;
  if (r.key.max_prompt > 0) out.update({{"max_prompt", r.key.max_prompt}, {"cut_tokens", r.cut_tokens}});
  if (r.beyond_context > 0) out["beyond_context"] = r.beyond_context;
  out.update({{"prompt_tokens", r.prompt_tokens},
              {"entries", r.entries},
              {"bytes_held", r.bytes_held},
              {"timings", {{"prefill_ms", r.timings.prefill_ms}, {"decode_ms", r.timings.decode_ms}}},
              {"group", r.group},
              {"group_size", r.group_size},
              {"version", kVersion}});
  return out;
}

std::string line_of(const Record& record) {
  return to_json(record).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Record record_of(const nlohmann::ordered_json& json) {
  const auto text = [&](const char* key) {
    return json.at(key).is_null() ? std::string() : json.at(key).get<std::string>();
  };
  Record r;
  r.key = {
      text("task"), text("id"), text("spec"), text("budget"), text("kv_type"), text("protocol"), text("prompt_hash"), 0,
      {},           {}};
  r.model_hash = text("model_hash");
  r.answer = text("answer");
  if (json.contains("skipped")) r.skipped = text("skipped");
  if (r.skipped.empty()) r.score = json.at("score").get<double>();
  if (json.contains("values")) r.values = json["values"].get<std::map<std::string, double>>();
  if (json.contains("series")) r.series = json["series"].get<std::map<std::string, std::vector<double>>>();
  if (json.contains("labels")) r.labels = json["labels"].get<std::map<std::string, std::string>>();
  if (json.contains("rope")) r.key.rope = text("rope");
  if (json.contains("calibration")) r.key.calibration = text("calibration");
  r.key.max_prompt = json.value("max_prompt", 0);
  r.cut_tokens = json.value("cut_tokens", 0);
  r.beyond_context = json.value("beyond_context", 0);
  r.prompt_tokens = json.at("prompt_tokens").get<int>();
  r.entries = json.at("entries").get<double>();
  r.bytes_held = json.at("bytes_held").get<std::size_t>();
  r.timings = {json.at("timings").at("prefill_ms").get<double>(), json.at("timings").at("decode_ms").get<double>()};
  r.group = text("group");
  r.group_size = json.at("group_size").get<int>();
  return r;
}

}  // namespace winnow::eval
