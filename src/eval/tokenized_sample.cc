// SPDX-License-Identifier: Apache-2.0
#include "eval/tokenized_sample.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/as_size.h"
#include "base/hash.h"

namespace winnow::eval {

namespace {

using Tokens = std::vector<Token>;

void append_tokens(Tokens& to, const Tokens& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Removes tokens from `from`, after the first `begin`.
void take_out(Tokens& from, std::size_t begin, std::size_t count) {
  const auto first = from.begin() + static_cast<std::ptrdiff_t>(begin);
  from.erase(first, first + static_cast<std::ptrdiff_t>(count));
}

/// Cuts the middle of a prompt to `room` tokens. Returns the number of tokens cut.
int cut_middle(Prompt& prompt, std::size_t room) {
  const std::size_t total = prompt.text.size() + prompt.question.size();
  if (total <= room) return 0;
  const std::size_t surplus = std::min(total - room, prompt.text.size());
  take_out(prompt.text, std::min(room / 2, prompt.text.size() - surplus), surplus);
  return static_cast<int>(surplus);
}

std::size_t count_tokens(const std::vector<Tokens>& documents, std::size_t longest) {
  std::size_t out = 0;
  for (const auto& document : documents) out += std::min(document.size(), longest);
  return out;
}

/// Cuts the middles of the longest documents to at most `room` tokens. Returns the number of tokens cut.
int cut_longest(std::vector<Tokens>& documents, std::size_t room) {
  std::size_t longest = 1;
  for (const auto& document : documents) longest = std::max(longest, document.size());
  while (longest > 1 && count_tokens(documents, longest) > room) --longest;
  std::size_t cut = 0;
  for (auto& document : documents) {
    const std::size_t surplus = document.size() - std::min(document.size(), longest);
    take_out(document, (document.size() - surplus) / 2, surplus);
    cut += surplus;
  }
  return static_cast<int>(cut);
}

/// The prompt's parts before and after the documents, with the template's parts. There is nothing between the documents
/// and the question.
Prompt around_documents(const Model& model, PromptText prompt) {
  const auto before = model.vocab().tokenize(prompt.text);
  prompt.text.clear();
  Prompt out = model.tokenize(prompt);
  append_tokens(out.text, before);
  return out;
}

void append_documents(const Model& model, const Sample& sample, int max_prompt, TokenizedSample& to) {
  std::vector<Tokens> texts;
  for (const auto& document : sample.documents) texts.push_back(model.vocab().tokenize(document));
  to.prompt = around_documents(model, sample.prompt);
  if (max_prompt > 0) {
    const auto room = as_size(max_prompt);
    to.cut_tokens = cut_longest(texts, room - std::min(room, as_size(to.tokens())));
  }
  const auto bos = model.vocab().beginning();
  if (to.prompt.text.size() > bos.size()) to.documents.push_back(to.prompt.text);
  for (const auto& text : texts) {
    append_tokens(to.documents.emplace_back(bos), text);
    append_tokens(to.prompt.text, text);
  }
}

}  // namespace

TokenizedSample tokenized(const Model& model, const Sample& sample, Protocol protocol, int max_prompt) {
  TokenizedSample out;
  out.sample = &sample;
  out.protocol = protocol;
  if (!sample.documents.empty()) {
    append_documents(model, sample, max_prompt, out);
    return out;
  }
  out.prompt = model.tokenize(sample.prompt);
  if (sample.later.empty() && !sample.begun.empty())
    append_tokens(out.prompt.question, model.vocab().tokenize(sample.begun));
  if (max_prompt > 0) out.cut_tokens = cut_middle(out.prompt, as_size(max_prompt));
  return out;
}

std::string hash_of(const TokenizedSample& sample) {
  Hasher hasher;
  hasher.add(std::as_bytes(std::span(sample.prompt.text)));
  hasher.add(std::as_bytes(std::span(sample.prompt.question)));
  for (const auto& document : sample.documents) {
    const std::uint64_t tokens = document.size();
    hasher.add(std::as_bytes(std::span(&tokens, 1)));
  }
  if (const auto& later = sample.sample->later; !later.empty()) {
    for (const auto* text : {&later, &sample.sample->begun}) hasher.add(std::as_bytes(std::span(*text)));
  }
  return fmt::format("{:016x}", hasher.value());
}

}  // namespace winnow::eval
