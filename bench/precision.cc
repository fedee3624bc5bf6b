// SPDX-License-Identifier: Apache-2.0
// The error of bf16: a prompt is read in bf16 and in f32. Then both decode f32's greedy tokens (teacher-forced), and
// their distributions are compared.
//   winnow_precision MODEL FILE.jsonl … [--prompts 1] [--tokens 7000] [--steps 64]
// Each line of a file has a "prompt"; longer ones are cut in the middle. Prints one CSV row for each prompt, and one
// for all.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/measures/distance.h"
#include "program.h"
#include "winnow/session.h"

namespace {

using winnow::Token;

struct Options {
  int threads = 0;
  std::string model;
  std::vector<std::string> files;
  int tokens = 7000;
  int steps = 64;
  int prompts = 1;
};

/// The prompts of the first lines of each file.
std::vector<std::vector<Token>> prompts_of(const winnow::Model& model, const Options& options) {
  const int most = options.tokens;
  std::vector<std::vector<Token>> out;
  for (const auto& path : options.files) {
    std::ifstream file(path);
    std::string line;
    for (int i = 0; i < options.prompts && std::getline(file, line); ++i) {
      auto tokens = model.vocab().tokenize(nlohmann::json::parse(line).at("prompt").get<std::string>());
      if (tokens.size() > static_cast<std::size_t>(most))
        tokens.erase(tokens.begin() + most / 2, tokens.end() - (most - most / 2));
      out.push_back(std::move(tokens));
    }
  }
  return out;
}

winnow::eval::Distance compare_teacher_forced(winnow::Session& exact, winnow::Session& fast,
                                              std::span<const Token> prompt, int steps) {
  winnow::eval::Distance result;
  const winnow::CacheOptions full;
  auto want = exact.prefill(prompt, std::span(&full, 1));
  auto got = fast.prefill(prompt, std::span(&full, 1));
  for (int step = 0; step < steps; ++step) {
    winnow::eval::Reference(want.logits).compare(got.logits, result);
    const auto token = static_cast<Token>(winnow::eval::best(want.logits));
    for (auto* const side : {&want, &got}) {
      winnow::Cache* const cache = &side->caches.front();
      (side == &want ? exact : fast).step(std::span(&cache, 1), std::span(&token, 1), side->logits);
    }
  }
  return result;
}

void print(const std::string& name, const winnow::eval::Distance& r) {
  std::printf("%s,%d,%.3g,%.4f\n", name.c_str(), r.steps, r.divergence / r.steps,
              static_cast<double>(r.agreed) / r.steps);
  std::fflush(stdout);  // since the next prompt takes long
}

void run(const Options& options) {
  const auto model = winnow::Model::load(options.model);
  winnow::Session exact(model, {options.threads, winnow::Precision::f32});
  winnow::Session fast(model, {options.threads, winnow::Precision::bf16});
  winnow::eval::Distance all;
  std::printf("tokens,steps,KL,top-1 agreement\n");
  for (const auto& prompt : prompts_of(*model, options)) {
    const auto one = compare_teacher_forced(exact, fast, prompt, options.steps);
    print(std::to_string(prompt.size()), one);
    all.divergence += one.divergence;
    all.agreed += one.agreed;
    all.steps += one.steps;
  }
  print("all", all);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("what reading prompts in bf16 costs beside f32");
  Options options;
  app.add_option("MODEL", options.model)->required();
  app.add_option("FILES", options.files, ".jsonl files with prompts")->required();
  app.add_option("--tokens", options.tokens, "longest prompt");
  app.add_option("--steps", options.steps, "tokens that are compared");
  app.add_option("--prompts", options.prompts, "prompts of each file");
  app.add_option("--threads", options.threads, "0: all cores");
  return winnow::bench::run_program(app, argc, argv, [&] { run(options); });
}
