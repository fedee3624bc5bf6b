// SPDX-License-Identifier: Apache-2.0
// Reads a text, keeps 64 entries per KV head, and answers.
//   ask MODEL.gguf TEXT QUESTION
#include <winnow/error.h>
#include <winnow/generate.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: ask MODEL.gguf TEXT QUESTION\n";
    return 2;
  }
  try {
    const auto model = winnow::Model::load(argv[1]);
    winnow::Session session(model, {});

    winnow::CacheOptions options;
    options.spec = winnow::Spec::parse("snapkv:window=16");
    options.budget = winnow::Budget::parse("64");

    winnow::PromptText text;
    text.text = argv[2];
    text.question = argv[3];
    text.format = winnow::PromptFormat::raw;
    const auto prompt = model->tokenize(text);
    auto prefilled =
        std::move(session.prefill(prompt.text, std::span(&prompt.question, 1), std::span(&options, 1)).front());

    winnow::Cache* const cache = &prefilled.caches.front();
    const auto kept = cache->stats();
    winnow::GenerateOptions generation;
    generation.max_tokens = 32;
    winnow::generate(session, std::span(&cache, 1), std::span(&prefilled.logits, 1), generation,
                     [](int, std::string_view bytes) { std::cout << bytes << std::flush; });
    std::cout << "\n" << kept.entries_per_head_mean << " entries per head of " << kept.tokens_seen << " tokens\n";
  } catch (const winnow::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
