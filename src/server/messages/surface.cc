// SPDX-License-Identifier: Apache-2.0
#include "server/messages/surface.h"

#include "server/answers/written.h"
#include "server/messages/body.h"
#include "server/messages/errors.h"
#include "server/messages/writer.h"

namespace winnow::server {

namespace {

std::shared_ptr<AnswerWriter> messages_writer(const std::shared_ptr<const Model>& /*model*/, AnswerPlan plan,
                                              std::shared_ptr<Responder> to) {
  return std::make_shared<MessageWriter>(std::move(plan), std::move(to));
}

HttpReply count_tokens_route(Fields& fields, const RequestTerms& terms) {
  const auto written = write(terms.model, read_messages_conversation(fields), terms.defaults.control);
  return {.body = text_of({{"input_tokens", written.prompt.size()}})};
}

}  // namespace

Surface messages_surface() {
  return {{"/v1/messages"}, "msg_",         read_messages_body,
          messages_writer,  messages_error, {{"/v1/messages/count_tokens", count_tokens_route}}};
}

}  // namespace winnow::server
