// winnow with the full cache against llama.cpp through libllama, in one process: prefill of a prompt and decoding after it. The sides take
// turns, so that what the machine does meanwhile meets both; the faster of llama.cpp with and without flash attention counts.
//   winnow_peer_bench MODEL [--tokens 2048] [--steps 64] [--threads 2] [--repetitions 7]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "peer/llama_cpp.h"
#include "times.h"
#include "winnow/error.h"
#include "winnow/session.h"

namespace {

using winnow::Token;

struct Options {
  std::string model;
  int tokens = 2048;
  int steps = 64;
  int threads = 2;
  int repetitions = 7;
};

using winnow::bench::seconds_of;
using winnow::bench::Times;

/// One side: it can read the prompt anew, and decode some tokens after it.
struct Side {
  std::string name;
  std::function<void()> prefill;
  std::function<void()> before_decode;  ///< back to the end of the prompt; not timed
  std::function<void()> decode;
  Times prefill_times;
  Times decode_times;
};

void measure(Side& side) {
  // ggml's pools go on polling for a while after a graph; the other side's must be asleep.
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  side.prefill_times.add(seconds_of(side.prefill));
  side.before_decode();
  side.decode_times.add(seconds_of(side.decode));
}

void print(const char* what, int tokens, const std::vector<Side>& sides, Times Side::*times) {
  double peer_least = 1e30;
  double peer_median = 1e30;
  for (const auto& side : sides) {
    const auto& t = side.*times;
    std::printf("%-8s %-18s %10.1f %10.1f", what, side.name.c_str(), tokens / t.least(), tokens / t.median());
    if (&side != &sides.back()) {
      peer_least = std::min(peer_least, t.least());
      peer_median = std::min(peer_median, t.median());
      std::printf("\n");
    } else {
      std::printf("   %.2fx (best) %.2fx (median) of the faster llama.cpp\n", peer_least / t.least(), peer_median / t.median());
    }
  }
}

/// llama.cpp, reading and decoding the given tokens.
Side llama_side(const std::string& name, winnow::peer::Llama& llama, std::span<const Token> prompt, std::span<const Token> answer) {
  Side side;
  side.name = name;
  side.prefill = [&llama, prompt] {
    llama.clear();
    llama.decode(prompt);
  };
  side.before_decode = [&llama, prompt] { llama.truncate(0, static_cast<int>(prompt.size())); };
  side.decode = [&llama, answer] {
    for (const Token& token : answer) llama.decode(std::span(&token, 1));
  };
  return side;
}

void run(const Options& options) {
  const auto model = winnow::Model::load(options.model);
  std::mt19937 random(1);
  std::uniform_int_distribution<Token> any(3, model->info().n_vocab - 1);
  std::vector<Token> tokens(static_cast<std::size_t>(options.tokens + options.steps));
  for (Token& token : tokens) token = any(random);
  const auto prompt = std::span<const Token>(tokens).first(static_cast<std::size_t>(options.tokens));
  const auto answer = std::span<const Token>(tokens).subspan(prompt.size());

  winnow::peer::LlamaOptions llama_options;
  llama_options.context = options.tokens + options.steps;
  llama_options.threads = options.threads;
  llama_options.flash_attention = winnow::peer::FlashAttention::on;
  winnow::peer::Llama flash(options.model, llama_options);
  llama_options.flash_attention = winnow::peer::FlashAttention::off;
  winnow::peer::Llama plain(options.model, llama_options);

  winnow::SessionOptions session_options;
  session_options.threads = options.threads;
  winnow::Session session(model, session_options);
  const winnow::CacheOptions full;
  winnow::Prefilled prefilled;
  std::vector<float> logits(static_cast<std::size_t>(model->info().n_vocab));
  Side winnow_side;
  winnow_side.name = "winnow";
  winnow_side.prefill = [&] { prefilled = session.prefill(prompt, std::span(&full, 1)); };
  winnow_side.before_decode = [] {};  // every prefill makes a new cache
  winnow_side.decode = [&] {
    winnow::Cache* const cache = &prefilled.caches.front();
    for (const Token& token : answer) session.step(std::span(&cache, 1), std::span(&token, 1), logits);
  };

  std::vector<Side> sides = {llama_side("llama.cpp, FA", flash, prompt, answer), llama_side("llama.cpp, no FA", plain, prompt, answer),
                             winnow_side};
  for (auto& side : sides) side.prefill();  // pages touched, clocks up
  for (int i = 0; i < options.repetitions; ++i) {
    for (auto& side : sides) measure(side);
  }
  std::printf("%d tokens, then %d steps; %d threads, %d repetitions in turn; tokens per second\n%-27s %10s %10s\n", options.tokens,
              options.steps, options.threads, options.repetitions, "", "best", "median");
  print("prefill", options.tokens, sides, &Side::prefill_times);
  print("decode", options.steps, sides, &Side::decode_times);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("winnow against llama.cpp");
  app.add_option("model", options.model, "GGUF file")->required();
  app.add_option("--tokens", options.tokens, "length of the prompt")->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps, "tokens to decode after it")->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber);
  app.add_option("--repetitions", options.repetitions)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  winnow::set_verbosity(winnow::Verbosity::quiet);
  try {
    run(options);
  } catch (const winnow::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
