// How near each method's predictions stay to the full cache's: greedy tokens of the full cache are forced through decode steps of every
// method, and their distributions compared. One prefill of each text serves all methods and budgets.
//   winnow_fidelity MODEL FILE.jsonl … [--protocol aware|agnostic] [--tokens 7000] [--steps 64] [--budgets 64,128] [--spec snapkv]
// Each line of a file has a "prompt"; longer ones are cut in the middle. Agnostic: the last tokens come after the cache is compressed.
// Prints one CSV row for each method and budget: mean KL(full || method) in nats, share of steps with the same best token.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "compositions.h"
#include "eval/distance.h"
#include "prompts.h"
#include "winnow/error.h"

namespace {

using winnow::Token;

struct Options {
  int threads = 0;
  std::string model;
  std::vector<std::string> files;
  std::string protocol = "aware";
  int tokens = 7000;
  int question = 64;
  int steps = 64;
  int prompts = 1;
};

using winnow::eval::best;
using winnow::eval::Distance;
using Logits = std::vector<float>;

/// Reads one prompt with all methods: the logits of each after it.
std::vector<Logits> read(winnow::Session& session, std::span<const Token> prompt, const Options& options,
                         std::span<const winnow::CacheOptions> methods, std::vector<winnow::Cache>& caches) {
  const bool agnostic = options.protocol == "agnostic";
  const auto text = prompt.first(prompt.size() - (agnostic ? static_cast<std::size_t>(options.question) : 0));
  auto prefilled = session.prefill(text, methods);
  caches = std::move(prefilled.caches);
  std::vector<Logits> logits(caches.size(), prefilled.logits);
  for (std::size_t i = 0; agnostic && i < caches.size(); ++i) logits[i] = session.extend(caches[i], prompt.subspan(text.size()));
  return logits;
}

void follow(winnow::Session& session, std::span<const Token> prompt, const Options& options, std::span<const winnow::CacheOptions> methods,
            std::vector<Distance>& results) {
  std::vector<winnow::Cache> caches;
  auto logits = read(session, prompt, options, methods, caches);
  std::vector<winnow::Cache*> batch;
  for (auto& cache : caches) batch.push_back(&cache);
  const auto vocabulary = static_cast<std::size_t>(session.model().info().n_vocab);
  std::vector<float> next(batch.size() * vocabulary);
  for (int step = 0; step < options.steps; ++step) {
    // Question-aware, the first token comes from full attention whatever the method.
    if (step > 0 || options.protocol == "agnostic") {
      const winnow::eval::Reference full(logits[0]);
      for (std::size_t i = 0; i < batch.size(); ++i) full.compare(logits[i], results[i]);
    }
    const std::vector<Token> tokens(batch.size(), static_cast<Token>(best(logits[0])));
    session.step(batch, tokens, next);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      logits[i].assign(next.begin() + static_cast<std::ptrdiff_t>(i * vocabulary),
                       next.begin() + static_cast<std::ptrdiff_t>((i + 1) * vocabulary));
    }
  }
}

void run(const Options& options, const std::vector<winnow::CacheOptions>& methods) {
  const auto model = winnow::Model::load(options.model);
  winnow::SessionOptions session_options;
  session_options.threads = options.threads;
  winnow::Session session(model, session_options);
  std::vector<Distance> results(methods.size());
  const auto prompts = winnow::bench::prompts_of(*model, options.files, options.prompts, options.tokens);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::fprintf(stderr, "prompt %zu of %zu, %zu tokens\n", i + 1, prompts.size(), prompts[i].size());
    follow(session, prompts[i], options, methods, results);
  }
  std::printf("spec,budget,KL,top-1 agreement\n");
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const auto& r = results[i];
    std::printf("\"%s\",%s,%.4f,%.4f\n", methods[i].spec.print().c_str(), methods[i].budget ? methods[i].budget->print().c_str() : "-",
                r.divergence / r.steps, static_cast<double>(r.agreed) / r.steps);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("how near each method's predictions stay to the full cache's");
  Options options;
  winnow::bench::Compositions compositions({"64", "128", "256", "512", "1024"});
  app.add_option("MODEL", options.model)->required();
  app.add_option("FILES", options.files, ".jsonl files with prompts")->required();
  app.add_option("--protocol", options.protocol)->check(CLI::IsMember({"aware", "agnostic"}));
  app.add_option("--tokens", options.tokens, "longest prompt");
  app.add_option("--steps", options.steps, "tokens that are compared");
  app.add_option("--prompts", options.prompts, "prompts of each file");
  app.add_option("--threads", options.threads, "0: all cores");
  compositions.add_options(app);
  return winnow::bench::run_program(app, argc, argv, [&] { run(options, compositions.options()); });
}
