// SPDX-License-Identifier: Apache-2.0
#include "cli/docs/json.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/run/report.h"

namespace winnow::cli {

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

void write_json(const nlohmann::ordered_json& json) { write_stdout(dump(json, 2)); }

}  // namespace winnow::cli
