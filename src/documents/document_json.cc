// SPDX-License-Identifier: Apache-2.0
#include "documents/document_json.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

namespace winnow::documents {

std::string utc(DocumentInfo::Time time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

nlohmann::ordered_json document_json(const DocumentInfo& d) {
  return {{"name", d.name},
          {"tags", d.tags},
          {"id", d.id},
          {"tokens", d.tokens},
          {"spec", d.cache.spec.print()},
          {"budget", d.cache.budget ? nlohmann::ordered_json(d.cache.budget->print()) : nlohmann::ordered_json()},
          {"kv_type", d.cache.kv_type.print()},
          {"bytes", d.bytes},
          {"model",
           {{"name", d.model_name},
            {"arch", d.model_arch},
            {"hash", fmt::format("{:016x}", d.model_hash)},
            {"n_layer", d.n_layer}}},
          {"added", utc(d.added)},
          {"used", utc(d.used)}};
}

const char* name_of(AddedDocument::Outcome outcome) {
  switch (outcome) {
    case AddedDocument::Outcome::added:
      return "added";
    case AddedDocument::Outcome::replaced:
      return "replaced";
    default:
      return "unchanged";
  }
}

nlohmann::ordered_json added_json(const AddedDocument& added) {
  nlohmann::ordered_json out{{"outcome", name_of(added.outcome)},
                             {"was_read", added.was_read},
                             {"read_ms", added.read_ms},
                             {"store_ms", added.store_ms}};
  out.update(document_json(added.info));
  return out;
}

nlohmann::ordered_json asked_json(const Asked& asked) {
  auto phases = nlohmann::ordered_json::object();
  for (const auto& phase : asked.phases) phases[phase.name] = phase.seconds * 1e3;
  return {{"sequence_ratio", asked.sequence_ratio},
          {"recompute_ratio", asked.recompute_ratio},
          {"recompute_ratio_of_kept", asked.recompute_ratio_of_kept},
          {"stages_ms", std::move(phases)},
          {"kept_blocks", asked.kept_blocks}};
}

}  // namespace winnow::documents
