// SPDX-License-Identifier: Apache-2.0
#include "server/infill/prompt.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/openai/completion_request.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

constexpr const char* kPrefix = "input_prefix";

InfillTokens infill_tokens(const Vocab& vocab) {
  const auto out = vocab.infill_tokens();
  if (out.prefix < 0 || out.suffix < 0 || out.middle < 0)
    throw NotImplemented("", "the model does not support infill: its file has no tokens for prefix, suffix and middle");
  return out;
}

void add_tokens(std::vector<Token>& to, const std::vector<Token>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::vector<Token> text_tokens(const Model& model, const std::string& text) {
  return model.vocab().tokenize(text, ControlTokens::as_text);
}

/// A file, or a part of one, that precedes the text.
struct Extra {
  std::string name;
  std::string text;
};

std::vector<Extra> read_extra(Fields& fields) {
  std::vector<Extra> out;
  fields.each("input_extra", [&out](Fields& extra) {
    out.push_back({extra.text("filename").value_or("tmp"), extra.required_text("text")});
  });
  return out;
}

/// The opening of a file: its name, or a separating line if the model has no token for it.
std::vector<Token> file_opening(const Model& model, const InfillTokens& with, const std::string& name) {
  if (with.file < 0) return text_tokens(model, "\n\n--- snippet ---\n\n");
  std::vector<Token> out{with.file};
  add_tokens(out, text_tokens(model, name + "\n"));
  return out;
}

/// The last `room` tokens of the files. Does not tokenize earlier files.
std::vector<Token> files_before(const Model& model, const InfillTokens& with, const std::vector<Extra>& extra,
                                std::size_t room) {
  std::vector<Token> out;
  if (with.file >= 0) out = file_opening(model, with, "filename");
  for (auto one = extra.rbegin(); one != extra.rend() && out.size() < room; ++one) {
    auto file = file_opening(model, with, one->name);
    add_tokens(file, text_tokens(model, one->text));
    out.insert(out.begin(), file.begin(), file.end());
  }
  if (with.repository >= 0 && out.size() < room) {
    auto name = text_tokens(model, "myproject\n");
    name.insert(name.begin(), with.repository);
    out.insert(out.begin(), name.begin(), name.end());
  }
  if (out.size() > room) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(room));
  return out;
}

}  // namespace

std::vector<Token> infill_prompt(Fields& fields, const RequestTerms& terms, int answer_tokens) {
  const Model& model = terms.model;
  const auto& vocab = model.vocab();
  const auto with = infill_tokens(vocab);
  const auto prefix = fields.required_text(kPrefix);
  const auto suffix = fields.required_text("input_suffix");
  const auto prompt = fields.text("prompt").value_or("");
  const auto extra = read_extra(fields);
  check_context(model, std::max({prefix.size(), suffix.size(), prompt.size()}), terms.context, kPrefix);
  std::vector<Token> out = vocab.beginning();
  out.push_back(with.prefix);
  add_tokens(out, text_tokens(model, prefix));
  add_tokens(out, vocab.tokenize(prompt, ControlTokens::parsed));
  out.push_back(with.suffix);
  add_tokens(out, text_tokens(model, suffix));
  out.push_back(with.middle);
  const std::int64_t room =
      std::int64_t{terms.context} - static_cast<std::int64_t>(out.size()) - std::min(answer_tokens, terms.context / 4);
  const auto before = files_before(model, with, extra, static_cast<std::size_t>(std::max<std::int64_t>(0, room)));
  out.insert(out.begin(), before.begin(), before.end());
  return out;
}

}  // namespace winnow::server
