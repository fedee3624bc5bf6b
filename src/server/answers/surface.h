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

/// A route that answers from its body at once, without the engine.
using TextRoute = HttpReply (*)(Fields& fields, const RequestTerms& terms);

/// An API by which answers are asked for.
struct Surface {
  std::vector<std::string> paths;  ///< for POST; what is wrong under them is told by error()
  std::string id_prefix;           ///< of answers
  /// Reads a body into a request. Throws ApiError.
  AnswerRequest (*read)(Fields& fields, const RequestTerms& terms);
  std::shared_ptr<AnswerWriter> (*writer)(const std::shared_ptr<const Model>& model, AnswerPlan plan,
                                          std::shared_ptr<Responder> to);
  /// Whatever was thrown, in its form.
  HttpReply (*error)(const std::exception_ptr& error);
  std::vector<std::pair<std::string, TextRoute>> text_routes = {};  ///< paths and routes, for POST
};

/// All of them.
const std::vector<Surface>& surfaces();

/// The form of errors under a path, which is that of its surface; OpenAI's where it is under none.
HttpReply error_under(const std::string& path, const std::exception_ptr& error);

}  // namespace winnow::server
