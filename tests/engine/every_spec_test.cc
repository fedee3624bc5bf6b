// SPDX-License-Identifier: Apache-2.0
// Tiny prompts and budgets for every method and composition: each request is answered, or refused with a sentence.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/sequence.h"
#include "engine/stages.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/policy/registry.h"
#include "winnow/recommended.h"
#include "winnow/session.h"

namespace winnow::test {
namespace {

using Random = std::mt19937;

template <class T>
const T& one_of(const std::vector<T>& all, Random& random) {
  return all[random() % all.size()];
}

/// The ends of an option's range, and all its words.
std::vector<std::string> extremes(const policy::Option& option) {
  const auto ends = [](const auto& range) {
    return std::vector<std::string>{fmt::format("{}", range.least), fmt::format("{}", range.most)};
  };
  if (const auto* n = std::get_if<policy::Option::Integer>(&option.kind)) return ends(*n);
  if (const auto* n = std::get_if<policy::Option::Number>(&option.kind)) return ends(*n);
  if (const auto* c = std::get_if<policy::Option::Choice>(&option.kind)) return c->all;
  const auto& n = std::get<policy::Option::WordOrInteger>(option.kind);
  auto out = ends(n);
  out.push_back(n.word);
  return out;
}

/// `base` with a third of the options, at extremes.
std::string with_some(const std::string& base, const std::vector<policy::Option>& options, Random& random) {
  std::string out = base;
  char separator = ':';
  for (const auto& option : options) {
    if (random() % 3 > 0) continue;
    out += separator + option.name + "=" + one_of(extremes(option), random);
    separator = ',';
  }
  return out;
}

/// Generates specs. The parser refuses compositions that make no sense.
class Specs {
 public:
  /// Every method with its defaults, with each extreme of each option, and with some extremes together.
  std::vector<std::string> methods(Random& random) const {
    std::vector<std::string> out;
    for (const auto& preset : all_.presets) {
      add(preset.name, out);
      for (const auto& option : preset.options) {
        for (const auto& value : extremes(option)) add(preset.name + ":" + option.name + "=" + value, out);
      }
      for (int i = 0; i < 4; ++i) add(with_some(preset.name, preset.options, random), out);
    }
    return out;
  }

  /// Every pair of wrappers around every method.
  std::vector<std::string> pairs(Random& random) const {
    std::vector<std::string> out;
    for (const auto& preset : all_.presets) {
      for (const auto& inner : all_.wrappers) {
        add(around(inner, with_some(preset.name, preset.options, random), random), out);
        for (const auto& outer : all_.wrappers)
          add(around(outer, around(inner, with_some(preset.name, preset.options, random), random), random), out);
      }
    }
    return out;
  }

  /// Some triples of wrappers.
  std::vector<std::string> triples(Random& random, int count) const {
    std::vector<std::string> out{recommended(Protocol::aware).print(), recommended(Protocol::agnostic).print()};
    while (static_cast<int>(out.size()) < count) {
      const auto& preset = one_of(all_.presets, random);
      std::string spec = with_some(preset.name, preset.options, random);
      for (int i = 0; i < 3; ++i) spec = around(one_of(all_.wrappers, random), spec, random);
      add(spec, out);
    }
    return out;
  }

 private:
  static std::string around(const policy::Wrapper& wrapper, const std::string& inner, Random& random) {
    return with_some(wrapper.name + "(" + inner + ")", wrapper.options, random);
  }

  static void add(const std::string& text, std::vector<std::string>& out) {
    try {
      Spec::parse(text);
      out.push_back(text);
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
  }

  const policy::Registry& all_ = policy::built_in();
};

/// A prompt with its cache options.
struct Asked {
  CacheOptions keep;
  std::vector<Token> text;
  std::vector<Token> question;
  std::vector<Token> turn;  ///< a later turn

  int tokens() const { return static_cast<int>(text.size() + question.size()); }
};

/// Makes a request with a small budget, or with the method's least one.
Asked some_request(const std::string& spec, const model::Hparams& hparams, Random& random) {
  Asked out;
  const int tokens = 1 + static_cast<int>(random() % 20);
  const Spec parsed = Spec::parse(spec);
  const auto& method = parsed.method();
  const int least = std::max(1, engine::least_budget(method, hparams, tokens));
  const std::string budget =
      one_of<std::string>({"1", "2", "3", "1%", "10%", std::to_string(least), std::to_string(least + 1)}, random);
  out.keep = options_of(spec, method.needs_budget() ? budget : "", one_of<std::string>({"f32", "f16", "q8_0"}, random));
  const int question = one_of<int>({0, 1, tokens / 2, tokens}, random);
  out.text = random_tokens(tokens - question, 288, random());
  out.question = random_tokens(question, 288, random());
  out.turn = random_tokens(1 + static_cast<int>(random() % 20), 288, random());
  return out;
}

class EverySpec : public testing::TestWithParam<std::string> {
 protected:
  EverySpec() {
    const auto tiny = GetParam() == "llama" ? TinyModel{} : tiny_of(GetParam());
    write_tiny_gguf(tiny, path_);
    model_ = Model::load(path_);
    session_ = std::make_unique<Session>(
        model_, SessionOptions{1, Precision::f32, 8, Pack::automatic, calibrated(folder_ / "model.cal", *model_)});
  }

  const model::Hparams& hparams() const { return model_->impl().weights->hparams(); }

  void expect_finite(std::span<const float> logits) {
    ASSERT_TRUE(std::ranges::all_of(logits, [](float x) { return std::isfinite(x); }));
  }

  void step(Cache& cache, Token token) {
    Cache* const one = &cache;
    std::vector<float> logits(static_cast<std::size_t>(hparams().n_vocab));
    session_->step(std::span(&one, 1), std::span(&token, 1), logits);
    expect_finite(logits);
  }

  /// Entries per KV head of the last `tokens` tokens, averaged over the layers without windows.
  double kept_of_last(const Cache& cache, int tokens) const {
    const auto kept = cache.kept();
    const int first = cache.stats().tokens_seen - tokens;
    double entries = 0;
    double heads = 0;
    for (std::size_t layer = 0; layer < kept.size(); ++layer) {
      if (hparams().layer(static_cast<int>(layer)).window > 0) continue;
      for (const auto& head : kept[layer]) {
        entries += static_cast<double>(std::ranges::count_if(head, [&](int position) { return position >= first; }));
        ++heads;
      }
    }
    return entries / heads;
  }

  int budget_of(const CacheOptions& keep, int tokens) const {
    return std::min(tokens, keep.spec.method().evicts() ? engine::budget_entries(keep, hparams(), tokens) : tokens);
  }

  /// Decodes some tokens and reads another turn.
  void go_on(Cache& cache, const Asked& asked) {
    const auto& method = asked.keep.spec.method();
    for (int i = 0; i < 4; ++i) step(cache, asked.turn[asked.turn.size() / 2]);
    const int limit = budget_of(asked.keep, 1 << 20);
    if (method.schedule == policy::Schedule::step && method.decoding.evict) {
      EXPECT_LE(cache.stats().entries_per_head_mean, std::max(limit, asked.tokens()));
    }
    const CacheMark mark = cache.mark();
    const int before = cache.stats().tokens_seen;
    expect_finite(session_->extend(cache, asked.turn));
    const int tokens = cache.stats().tokens_seen - before;
    const auto later = engine::options_later(asked.keep, hparams(), tokens);
    session_->compress(cache, asked.turn, mark);
    if (method.schedule != policy::Schedule::step) {
      EXPECT_EQ(kept_of_last(cache, tokens), later ? budget_of(*later, tokens) : tokens);
    }
    step(cache, asked.turn.front());
  }

  /// Returns false if the request was refused.
  bool answers(const Asked& asked) {
    std::vector<Prefilled> read;
    try {
      read = session_->prefill(asked.text, std::span(&asked.question, 1), std::span(&asked.keep, 1));
    } catch (const UsageError& error) {
      const std::string why = error.what();
      EXPECT_EQ(why.find('\n'), std::string::npos);
      EXPECT_TRUE(why.find_first_of("0123456789") != std::string::npos) << why;
      return false;
    }
    expect_finite(read.front().logits);
    Cache& cache = read.front().caches.front();
    EXPECT_EQ(kept_of_last(cache, asked.tokens()), budget_of(asked.keep, asked.tokens()));
    go_on(cache, asked);
    return true;
  }

  void expect_answers(const std::vector<std::string>& specs, Random& random, int each) {
    int answered = 0;
    for (const auto& spec : specs) {
      for (int i = 0; i < each; ++i) {
        const Asked asked = some_request(spec, hparams(), random);
        if (asked.keep.spec.method().retrieves && hparams().n_kv_layer < hparams().n_layer) continue;
        SCOPED_TRACE(fmt::format("{} @ {}, {} and {} tokens, then {}", spec,
                                 asked.keep.budget ? asked.keep.budget->print() : "all", asked.text.size(),
                                 asked.question.size(), asked.turn.size()));
        try {
          answered += answers(asked) ? 1 : 0;
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
    EXPECT_GT(answered, static_cast<int>(specs.size()) * each / 4);
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
};

TEST_P(EverySpec, of_a_method_answers_or_is_refused) {
  Random random(1);
  expect_answers(Specs().methods(random), random, 1);
}

// One model of each kind: plain, with windows, with windows and sinks, with KV-sharing layers.
INSTANTIATE_TEST_SUITE_P(of_models, EverySpec, testing::Values("llama", "gemma3", "gpt-oss", "gemma4"),
                         [](const auto& of) { return of.param == std::string("gpt-oss") ? "gpt_oss" : of.param; });

class Compositions : public EverySpec {};

TEST_P(Compositions, of_two_wrappers_answer_or_are_refused) {
  Random random(2);
  expect_answers(Specs().pairs(random), random, 1);
}

TEST_P(Compositions, of_three_wrappers_answer_or_are_refused) {
  Random random(3);
  expect_answers(Specs().triples(random, 300), random, 1);
}

INSTANTIATE_TEST_SUITE_P(of_models, Compositions, testing::Values("llama"));

/// The recommended method shares the budget over the heads of all layers, so some heads keep no entries to fit values
/// to.
TEST_P(Compositions, of_the_recommended_method_answer_at_one_entry) {
  Asked asked{options_of(recommended(Protocol::aware).print(), "1"), {}, random_tokens(6, 288), random_tokens(3, 288)};
  EXPECT_TRUE(answers(asked));
}

}  // namespace
}  // namespace winnow::test
