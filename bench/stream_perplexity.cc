// Perplexity of a long text that is read token by token through a per-step method, far beyond the context a model was trained with.
//   winnow_stream_perplexity MODEL TEXT SPEC BUDGET TOKENS [WINDOW]
// Prints one CSV row for each WINDOW tokens: position, perplexity of the window, bytes held, tokens per second.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "winnow/error.h"
#include "winnow/model.h"
#include "winnow/session.h"

namespace {

double log_probability(const std::vector<float>& logits, winnow::Token token) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  const double sum = std::accumulate(logits.begin(), logits.end(), 0.0, [&](double s, float x) { return s + std::exp(x - largest); });
  return logits[static_cast<std::size_t>(token)] - largest - std::log(sum);
}

void run(const char* model_path, const char* text_path, const winnow::CacheOptions& options, std::size_t tokens, std::size_t window) {
  const auto model = winnow::Model::load(model_path);
  std::ifstream file(text_path, std::ios::binary);
  if (!file) throw winnow::InputError(std::string("cannot read ") + text_path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto ids = model->tokenize(std::string_view(text).substr(0, tokens * 8));
  if (ids.size() < tokens) throw winnow::InputError("the text has only " + std::to_string(ids.size()) + " tokens");

  winnow::Session session(model, {});
  auto prefilled = session.prefill(std::span(ids).first(1), std::span(&options, 1));
  auto& cache = prefilled.caches.front();
  auto logits = prefilled.logits;
  std::printf("position,perplexity,bytes_held,tokens_per_second\n");
  double sum = 0;
  auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 1; i < tokens; ++i) {
    sum += log_probability(logits, ids[i]);
    winnow::Cache* const one = &cache;
    session.step(std::span(&one, 1), std::span(ids).subspan(i, 1), logits);
    if (i % window != 0) continue;
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - begin).count();
    std::printf("%zu,%.3f,%zu,%.1f\n", i, std::exp(-sum / static_cast<double>(window)), cache.stats().bytes_held,
                static_cast<double>(window) / seconds);
    std::fflush(stdout);
    sum = 0;
    begin = now;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: %s MODEL TEXT SPEC BUDGET TOKENS [WINDOW]\n", argv[0]);
    return 2;
  }
  try {
    winnow::CacheOptions options;
    options.spec = winnow::Spec::parse(argv[3]);
    if (options.spec.print() != "full") options.budget = winnow::Budget::parse(argv[4]);
    run(argv[1], argv[2], options, std::strtoul(argv[5], nullptr, 10), argc > 6 ? std::strtoul(argv[6], nullptr, 10) : 1000);
  } catch (const winnow::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
