// SPDX-License-Identifier: Apache-2.0
#include "server/openai/missing_fields.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <utility>

#include "server/openai/errors.h"

namespace winnow::server {

namespace {

void refuse_if(bool asks, const char* name) {
  if (asks) throw NotImplemented(name, fmt::format("{} is not implemented: leave it out", name));
}

void refuse_switches(Fields& fields) {
  constexpr std::array kOff{"include_stop_str_in_output", "use_beam_search", "return_token_ids",
                            "return_tokens_as_token_ids", "post_sampling_probs"};
  for (const char* const name : kOff) refuse_if(fields.is_set(name), name);
  refuse_if(!fields.boolean("skip_special_tokens").value_or(true), "skip_special_tokens");
}

/// Refuses numbers, except at the value that has no effect.
void refuse_numbers(Fields& fields) {
  constexpr std::array kNeutral{std::pair{"typical_p", 1.0}, std::pair{"xtc_probability", 0.0},
                                std::pair{"dry_multiplier", 0.0}, std::pair{"mirostat", 0.0},
                                std::pair{"dynatemp_range", 0.0}};
  for (const auto& [name, neutral] : kNeutral) refuse_if(fields.number(name).value_or(neutral) != neutral, name);
  refuse_if(fields.number("top_n_sigma").value_or(0) > 0, "top_n_sigma");
}

/// Refuses fields with a value, or with a list that is not empty.
void refuse_values(Fields& fields) {
  for (const char* const name : {"bad_words", "allowed_token_ids", "documents"}) {
    const Json* const list = fields.list(name);
    refuse_if(list != nullptr && !list->empty(), name);
  }
  for (const char* const name : {"audio", "web_search_options", "guided_regex", "guided_choice", "guided_grammar",
                                 "grammar", "chat_template", "prompt_logprobs", "truncate_prompt_tokens"})
    refuse_if(fields.any(name) != nullptr, name);
}

void refuse_modalities(Fields& fields) {
  const Json* const list = fields.list("modalities");
  if (list == nullptr) return;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto path = fmt::format("modalities[{}]", i);
    if (text_at((*list)[i], path) != "text") throw NotImplemented(path, path + " is not implemented: only text is");
  }
}

}  // namespace

void refuse_missing(Fields& fields) {
  refuse_switches(fields);
  refuse_numbers(fields);
  refuse_values(fields);
  refuse_modalities(fields);
}

void read_without_effect(Fields& fields) {
  for (const char* const name : {"model", "user", "safety_identifier", "service_tier", "verbosity", "prompt_cache_key",
                                 "prompt_cache_retention"})
    fields.text(name);
  for (const char* const name : {"store", "spaces_between_special_tokens"}) fields.boolean(name);
  for (const char* const name : {"metadata", "prediction"}) fields.object(name);
  fields.number("length_penalty");
}

}  // namespace winnow::server
