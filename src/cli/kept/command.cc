// SPDX-License-Identifier: Apache-2.0
#include "cli/kept/command.h"

#include <spdlog/fmt/fmt.h>

#include "base/as_size.h"
#include "base/counted.h"
#include "base/log.h"
#include "cli/kept/passages.h"
#include "cli/kept/picture.h"
#include "cli/output.h"
#include "winnow/error.h"
#include "winnow/model.h"

namespace winnow::cli {

namespace {

constexpr int kPassages = 10;

/// The text's tokens and their place in the prompt, which begins with the template's tokens.
TextTokens tokens_of(const Model& model, const PromptText& prompt) {
  const auto all = model.tokenize(prompt).text;
  const auto text = model.vocab().tokenize(prompt.text);
  TextTokens out{static_cast<int>(all.size() - text.size()), {}};
  for (const auto token : text) out.token_texts.push_back(model.vocab().text(token));
  return out;
}

/// Throws InputError if the positions are those of another text. Files of earlier versions have only the length of the
/// prompt, including the question.
void check_same(const Kept& kept, const TextIdentity& text, const KeptOptions& options) {
  constexpr const char* kOther =
      "it was another text, model, template (--raw) or system message (--system), or read with --special";
  if (!kept.text && text.tokens > as_size(kept.n_prompt)) {
    throw InputError(fmt::format("{} ends at token {}, but the prompt of {} at {}: {}", options.text, text.tokens,
                                 options.file, kept.n_prompt, kOther));
  }
  if (!kept.text) {
    log().warn("{} does not identify its text: assuming that it is {}, the first {} of its {}", options.file,
               options.text, counted(text.tokens, "token"), kept.n_prompt);
  } else if (kept.text->tokens == 0) {
    throw InputError(fmt::format("{} is of a question without a text, but {} has {}", options.file, options.text,
                                 counted(text.tokens, "token")));
  } else if (*kept.text != text) {
    throw InputError(fmt::format("{} is of {} with the hash {}, but {} gives {} with the hash {}: {}", options.file,
                                 counted(kept.text->tokens, "token"), kept.text->hash, options.text, text.tokens,
                                 text.hash, kOther));
  }
}

std::string passages(const Kept& kept, const KeptOptions& options) {
  if (!options.model.is_named())
    throw UsageError("--text needs the model that read it: give -m MODEL.gguf or -hf USER/REPO, or set WINNOW_MODEL");
  check(options.model);
  const PromptText prompt{
      read_text(options.text), "", options.system, options.raw ? PromptFormat::raw : PromptFormat::chat, {}};
  const auto model = Model::load(path_of(options.model));
  check_same(kept, identity_of_text(*model, before_question(prompt)), options);
  return list(best_passages(kept, tokens_of(*model, prompt), kPassages));
}

}  // namespace

void show_kept(const KeptOptions& options) {
  const Kept kept = read_kept(options.file);
  const std::string more = options.text.empty() ? "" : passages(kept, options);
  if (!options.output.empty()) return plot(kept, options.output);
  show(picture(kept, terminal_canvas()) + more);
}

}  // namespace winnow::cli
