// SPDX-License-Identifier: Apache-2.0
#include "cli/kept/command.h"

#include <spdlog/fmt/fmt.h>

#include "base/as_size.h"
#include "cli/kept/passages.h"
#include "cli/kept/picture.h"
#include "cli/output.h"
#include "winnow/error.h"
#include "winnow/model.h"

namespace winnow::cli {

namespace {

constexpr int kPassages = 10;

/// Where the text's tokens lie in the prompt: after what the template puts first.
TextTokens tokens_of(const KeptOptions& options) {
  const auto model = Model::load(options.model);
  PromptText prompt{
      read_text(options.text), "", options.system, options.raw ? PromptFormat::raw : PromptFormat::chat, {}};
  const auto all = model->tokenize(prompt).text;
  const auto text = model->tokenize(prompt.text);
  TextTokens out{static_cast<int>(all.size() - text.size()), {}};
  for (const auto token : text) out.pieces.push_back(model->piece(token));
  return out;
}

std::string passages(const Kept& kept, const KeptOptions& options) {
  if (options.model.empty())
    throw UsageError("--text needs the model that has read it: give -m MODEL.gguf or set WINNOW_MODEL");
  const auto text = tokens_of(options);
  const auto end = as_size(text.first) + text.pieces.size();
  if (end > as_size(kept.n_prompt)) {
    throw InputError(
        fmt::format("{} ends at token {}, the prompt of {} at {}: it was another text, model or template (--raw)",
                    options.text, end, options.file, kept.n_prompt));
  }
  return list(best_passages(kept, text, kPassages));
}

}  // namespace

void show_kept(const KeptOptions& options) {
  const Kept kept = read_kept(options.file);
  const std::string more = options.text.empty() ? "" : passages(kept, options);
  if (!options.output.empty()) return plot(kept, options.output);
  show(picture(kept, terminal_canvas()) + more);
}

}  // namespace winnow::cli
