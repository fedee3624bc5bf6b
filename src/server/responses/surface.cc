// SPDX-License-Identifier: Apache-2.0
#include "server/responses/surface.h"

#include "server/responses/body.h"
#include "server/responses/errors.h"
#include "server/responses/writer.h"

namespace winnow::server {

namespace {

std::shared_ptr<AnswerWriter> responses_writer(const std::shared_ptr<const Model>& model, AnswerPlan plan,
                                               std::shared_ptr<Responder> to) {
  return std::make_shared<ResponseWriter>(model, std::move(plan), std::move(to));
}

}  // namespace

Surface responses_surface() {
  return {{"/v1/responses", "/responses"}, "resp_", read_responses_body, responses_writer, responses_error};
}

}  // namespace winnow::server
