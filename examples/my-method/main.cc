// SPDX-License-Identifier: Apache-2.0
// Adds two methods to winnow, then reads a text, keeps what a spec and a budget say, and answers.
//   my-method MODEL.gguf SPEC BUDGET TEXT QUESTION
#include <winnow/error.h>
#include <winnow/generate.h>

#include <iostream>

#include "my_methods.h"

namespace {

void answer(const std::string& file, const winnow::CacheOptions& options, const winnow::PromptText& text) {
  const auto model = winnow::Model::load(file);
  winnow::Session session(model, {});
  const auto prompt = model->tokenize(text);
  auto read = std::move(session.prefill(prompt.text, std::span(&prompt.question, 1), std::span(&options, 1)).front());

  winnow::Cache* const cache = &read.caches.front();
  std::cout << options.spec.print() << " keeps " << cache->stats().entries_per_head_mean << " entries per head of "
            << cache->stats().tokens_seen << " tokens\n";
  winnow::GenerateOptions generation;
  generation.max_tokens = 32;
  winnow::generate(session, std::span(&cache, 1), std::span(&read.logits, 1), generation,
                   [](int, std::string_view bytes) { std::cout << bytes << std::flush; });
  std::cout << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: my-method MODEL.gguf SPEC BUDGET TEXT QUESTION\n";
    return 2;
  }
  try {
    winnow::policy::add_method(winnow::policy::with_positions(value_norm()));
    winnow::policy::add_method(winnow::policy::with_positions(attended_values()));

    winnow::CacheOptions options;
    options.spec = winnow::Spec::parse(argv[2]);
    options.budget = winnow::Budget::parse(argv[3]);
    winnow::PromptText text;
    text.text = argv[4];
    text.question = argv[5];
    text.format = winnow::PromptFormat::raw;
    answer(argv[1], options, text);
  } catch (const winnow::Error& error) {
    std::cerr << "my-method: " << error.what() << "\n";
    return 1;
  }
}
