// SPDX-License-Identifier: Apache-2.0
#include "server/infill/surface.h"

#include <utility>

#include "server/infill/prompt.h"
#include "server/infill/writer.h"
#include "server/openai/errors.h"
#include "server/openai/generation_fields.h"
#include "server/openai/response_format.h"

namespace winnow::server {

namespace {

/// Refuses features other than the text of one answer.
void refuse_more(const AnswerForm& form) {
  if (form.answers > 1) throw NotImplemented("n", "n is not implemented here: /infill gives one answer");
  if (form.alternatives) throw NotImplemented("logprobs", "logprobs are not implemented here: use /v1/completions");
  if (form.echo) throw NotImplemented("echo", "echo is not implemented here: use /v1/completions");
}

AnswerRequest read_infill_body(Fields& fields, const RequestTerms& terms) {
  AnswerRequest out{.form = read_completion_form(fields)};
  refuse_more(out.form);
  out.generate = read_generation(fields, out.form, terms.defaults, terms.model.info());
  out.asked = PromptsRequest{{infill_prompt(fields, terms, out.generate.max_tokens)}, read_response_format(fields)};
  return out;
}

std::shared_ptr<AnswerWriter> infill_writer(const std::shared_ptr<const Model>& /*model*/, AnswerPlan plan,
                                            std::shared_ptr<Responder> to) {
  return std::make_shared<InfillWriter>(std::move(plan), std::move(to));
}

}  // namespace

Surface infill_surface() { return {{"/infill"}, "infill-", read_infill_body, infill_writer, error_reply}; }

}  // namespace winnow::server
