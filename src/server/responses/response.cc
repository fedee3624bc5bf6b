// SPDX-License-Identifier: Apache-2.0
#include "server/responses/response.h"

namespace winnow::server {

Json response_json(const AnswerHead& head, const char* status, const Json& repeated) {
  Json out{{"id", head.id},
           {"object", "response"},
           {"created_at", head.created},
           {"status", status},
           {"background", false},
           {"error", nullptr},
           {"incomplete_details", nullptr},
           {"instructions", nullptr},
           {"max_output_tokens", nullptr},
           {"metadata", Json::object()},
           {"model", head.model},
           {"output", Json::array()},
           {"parallel_tool_calls", true},
           {"previous_response_id", nullptr},
           {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
           {"store", false},
           {"temperature", nullptr},
           {"text", {{"format", {{"type", "text"}}}}},
           {"tool_choice", "auto"},
           {"tools", Json::array()},
           {"top_p", nullptr},
           {"truncation", "disabled"},
           {"usage", nullptr}};
  out.update(repeated);
  return out;
}

}  // namespace winnow::server
