// SPDX-License-Identifier: Apache-2.0
// A model file of any header and a megabyte of weights: refused with an Error, or loaded. If it loads, its vocabulary
// must be usable and its network must read and generate a few tokens. If it is refused, describe_model() must cope with
// it. The byte before the header chooses the weights, whose values are never invalid: zeros, small numbers or any
// bytes.
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/log.h"
#include "fuzz/memory_file.h"
#include "winnow/describe.h"
#include "winnow/error.h"
#include "winnow/model.h"
#include "winnow/session.h"

namespace {

constexpr std::size_t kWeights = std::size_t{1} << 20U;
constexpr int kPrompt = 6;
constexpr int kSteps = 3;

enum class Weights { zeros, small, any };

std::string weights(Weights kind) {
  std::string out(kWeights, '\0');
  std::minstd_rand random(1);
  for (std::size_t at = 0; at < kWeights; at += sizeof(float)) {
    const auto bits = static_cast<std::uint32_t>(random());
    const float small = static_cast<float>(bits % 2001) / 1e4F - 0.1F;
    if (kind == Weights::small) std::memcpy(&out[at], &small, sizeof(small));
    if (kind == Weights::any) std::memcpy(&out[at], &bits, sizeof(bits));
  }
  return out;
}

std::vector<winnow::Token> use_vocabulary(const winnow::Model& model) {
  auto tokens = model.vocab().tokenize("Some words, 12 numbers \xF0\x9F\x90\x8B and <s> names.");
  for (const auto token : tokens) model.vocab().text(token);
  winnow::PromptText prompt;
  prompt.text = "text";
  prompt.question = "question";
  prompt.control = winnow::ControlTokens::parsed;
  model.tokenize(prompt);
  if (tokens.size() > kPrompt) tokens.resize(kPrompt);
  return tokens;
}

void run_network(const std::shared_ptr<const winnow::Model>& model, const std::vector<winnow::Token>& prompt) {
  winnow::Session session(model, {1, winnow::Precision::automatic, 4});
  std::array<winnow::CacheOptions, 2> options;
  options[1].spec = winnow::Spec::parse("streaming-llm:sinks=1");
  options[1].budget = winnow::Budget::parse("4");
  auto read = session.prefill(prompt, options);
  const std::array caches = {&read.caches[0], &read.caches[1]};
  std::vector<float> logits(2 * static_cast<std::size_t>(model->info().n_vocab));
  for (int i = 0; i < kSteps; ++i) {
    const std::array tokens = {prompt.front(), prompt.back()};
    session.step(caches, tokens, logits);
  }
}

/// Describes a file that was refused.
void describe(const std::string& path) {
  try {
    winnow::describe_model(path);
  } catch (const winnow::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  winnow::set_verbosity(winnow::Verbosity::quiet);
  static const std::array kinds = {weights(Weights::zeros), weights(Weights::small), weights(Weights::any)};
  if (size == 0) return 0;
  const auto kind = static_cast<unsigned char>(data[0]);
  const winnow::test::MemoryFile file(std::string(data + 1, size - 1) + kinds.at(kind % kinds.size()));
  try {
    const auto model = winnow::Model::load(file.path());
    const auto tokens = use_vocabulary(*model);
    if (!tokens.empty()) run_network(model, tokens);
  } catch (const winnow::Error&) {
    describe(file.path());
  }
  return 0;
}
