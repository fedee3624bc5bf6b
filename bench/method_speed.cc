// What each method costs beside the full cache: prefill of a text, and decoding after it, in turns, so that what the machine does meanwhile
// meets all alike.
//   winnow_method_speed MODEL TEXT [--tokens 8192] [--steps 64] [--repetitions 3] [--budgets 512] [--spec snapkv]
// Prints, for each method, seconds (least and median) and their ratios to the full cache's. Decode of evicting methods is also set against
// the full cache of a text as short as the budget.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "compositions.h"
#include "times.h"
#include "winnow/error.h"

namespace {

using winnow::Token;

struct Options {
  std::string model;
  std::string text;
  int tokens = 8192;
  int steps = 64;
  int threads = 0;
  int repetitions = 3;
};

struct Measured {
  std::string name;
  winnow::CacheOptions cache;
  std::span<const Token> prompt;
  winnow::bench::Times prefill;
  winnow::bench::Times decode;
};

void measure(winnow::Session& session, int steps, Measured& m) {
  std::optional<winnow::Cache> cache;
  m.prefill.add(winnow::bench::seconds_of([&] { cache = std::move(session.prefill(m.prompt, std::span(&m.cache, 1)).caches.front()); }));
  std::vector<float> logits(static_cast<std::size_t>(session.model().info().n_vocab));
  winnow::Cache* const one = &*cache;
  const auto step = [&](int i) { session.step(std::span(&one, 1), m.prompt.subspan(static_cast<std::size_t>(i), 1), logits); };
  step(0);  // a method's first step may have to make room
  m.decode.add(winnow::bench::seconds_of([&] {
    for (int i = 0; i < steps; ++i) step(i);
  }));
}

std::vector<Token> tokens_of(const winnow::Model& model, const Options& options) {
  std::ifstream file(options.text, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  auto tokens = model.tokenize(text.substr(0, static_cast<std::size_t>(options.tokens) * 16));
  if (static_cast<int>(tokens.size()) < options.tokens) throw winnow::InputError(options.text + " is too short");
  tokens.resize(static_cast<std::size_t>(options.tokens));
  return tokens;
}

void run(const Options& options, const std::vector<winnow::CacheOptions>& methods) {
  const auto model = winnow::Model::load(options.model);
  winnow::SessionOptions session_options;
  session_options.threads = options.threads;
  winnow::Session session(model, session_options);
  const auto tokens = tokens_of(*model, options);
  std::vector<Measured> all;
  const auto short_text = static_cast<std::size_t>(methods.back().budget->entries(options.tokens, 1, 1, 1));
  all.push_back({"full, " + std::to_string(short_text) + " tokens", {}, std::span(tokens).first(short_text), {}, {}});
  for (const auto& m : methods) {
    all.push_back({m.spec.print() + (m.budget ? " @ " + m.budget->print() : ""), m, tokens, {}, {}});
  }
  for (int i = 0; i < options.repetitions; ++i) {
    for (auto& m : all) {
      std::fprintf(stderr, "repetition %d, %s\n", i + 1, m.name.c_str());
      measure(session, options.steps, m);
    }
  }
  const auto& brief = all[0];
  const auto& full = all[1];
  std::printf("%-44s %9s %9s %7s %7s | %8s %8s %7s %7s %7s\n", "", "prefill s", "median", "/full", "/full", "decode s", "median", "full/",
              "short/", "short/");
  for (const auto& m : all) {
    std::printf("%-44s %9.3f %9.3f %7.3f %7.3f | %8.4f %8.4f %7.2f %7.2f %7.2f\n", m.name.c_str(), m.prefill.least(), m.prefill.median(),
                m.prefill.least() / full.prefill.least(), m.prefill.median() / full.prefill.median(), m.decode.least(), m.decode.median(),
                full.decode.least() / m.decode.least(), brief.decode.least() / m.decode.least(), brief.decode.median() / m.decode.median());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("what each method costs beside the full cache");
  Options options;
  winnow::bench::Compositions compositions({"512"});
  app.add_option("MODEL", options.model)->required();
  app.add_option("TEXT", options.text)->required();
  app.add_option("--tokens", options.tokens, "of the text");
  app.add_option("--steps", options.steps, "decoded tokens that are timed");
  app.add_option("--threads", options.threads);
  app.add_option("--repetitions", options.repetitions)->check(CLI::PositiveNumber);
  compositions.add_options(app);
  return winnow::bench::run_program(app, argc, argv, [&] { run(options, compositions.options()); });
}
