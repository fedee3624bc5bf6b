// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/answers/events.h"
#include "server/answers/plan.h"
#include "server/answers/request.h"
#include "server/http/message.h"
#include "winnow/model.h"

namespace winnow::server {

/// A route that replies immediately, without the engine.
using TextRoute = HttpReply (*)(Fields& fields, const RequestTerms& terms);

/// An API for requesting answers.
struct Surface {
  std::vector<std::string> paths;  ///< POST routes, whose errors error() formats
  std::string id_prefix;           ///< of the ids of answers
  /// Reads a body into a request. Throws ApiError.
  AnswerRequest (*read)(Fields& fields, const RequestTerms& terms);
  std::shared_ptr<AnswerWriter> (*writer)(const std::shared_ptr<const Model>& model, AnswerPlan plan,
                                          std::shared_ptr<Responder> to);
  /// Formats any exception as an error of this API.
  HttpReply (*error)(const std::exception_ptr& error);
  std::vector<std::pair<std::string, TextRoute>> text_routes = {};  ///< paths and routes, for POST
};

/// All APIs.
const std::vector<Surface>& surfaces();

/// Formats an error for a path: in its API's format, or in OpenAI's if no API has it.
HttpReply error_under(const std::string& path, const std::exception_ptr& error);

}  // namespace winnow::server
