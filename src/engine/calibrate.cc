// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "base/file.h"
#include "engine/calibration.h"
#include "engine/model_impl.h"
#include "engine/query_sums.h"
#include "engine/ridge.h"
#include "engine/session_impl.h"
#include "winnow/calibration.h"
#include "winnow/error.h"
#include "winnow/policy/registry.h"

namespace winnow {

namespace {

/// About as long as the texts that KVzap's authors train with, so that the scores of all passages are alike: a softmax
/// over more tokens gives each of them less.
constexpr int kPassage = 1024;
constexpr int kLeast = 64;         ///< tokens of a passage
constexpr std::size_t kSinks = 4;  ///< first tokens of a passage that are left out: they are unlike all others
constexpr double kAlpha = 1;
constexpr double kLeastScore = 1e-12;  ///< so that a score of 0 has a logarithm

/// Which tokens of a text of `all` are read.
std::vector<std::pair<int, int>> passages_of(int all, int most) {
  const int whole = std::min(all, most) / kPassage;
  std::vector<std::pair<int, int>> out;
  if (whole == 0) return {{0, std::min(all, most)}};
  const int there = all / kPassage;
  for (int i = 0; i < whole; ++i) {
    const int first = static_cast<int>(static_cast<std::int64_t>(i) * there / whole) * kPassage;
    out.emplace_back(first, first + kPassage);
  }
  return out;
}

/// The queries of the layers while a passage is read, the rows that enter them, and what the passage's repetition then
/// says of these.
class Fitting : public policy::Observer {
 public:
  explicit Fitting(const model::Hparams& hparams) : hparams_(hparams) {
    for (int l = 0; l < hparams.n_kv_layer; ++l) {
      const auto& spec = hparams.layer(l);
      if (spec.window > 0) continue;
      fits_.emplace_back(hparams.n_embd, spec.n_head_kv);
      queries_.emplace_back(spec.n_head, spec.head_dim);
    }
  }

  static std::size_t bytes(const model::Hparams& hparams) {
    std::size_t out = 0;
    for (int l = 0; l < hparams.n_kv_layer; ++l) {
      if (hparams.layer(l).window == 0) out += engine::Ridge::bytes(hparams.n_embd, hparams.layer(l).n_head_kv);
    }
    return out;
  }

  policy::ObserverNeeds needs() const override { return {.inputs = sees_inputs_, .queries = sees_queries_}; }

  void begin_layer(const policy::ObservedLayer& layer) override {
    const auto tokens = as_size(layer.prompt.tokens);
    layer_ = layer.number;
    query_width_ = as_size(layer.shape.query_heads) * as_size(layer.shape.head_dim);
    sees_queries_ = layer.shape.window == 0;
    sees_inputs_ = sees_queries_ && layer.keys_of == layer.number;
    if (sees_queries_) rotated_queries_[layer_].assign(tokens * query_width_, 0);
    if (sees_inputs_) rows_[layer_].assign(tokens * as_size(layer.input_dim), 0);
  }

  void see_inputs(const policy::LayerInputs& inputs, Worker worker) override {
    copy_rows({inputs.data, as_size(inputs.count) * as_size(inputs.width)},
              as_size(inputs.first) * as_size(inputs.width), worker, rows_.at(layer_));
  }

  void see_rows(const policy::LayerRows& rows, Worker worker) override {
    copy_rows({rows.queries, as_size(rows.count) * query_width_}, as_size(rows.first) * query_width_, worker,
              rotated_queries_.at(layer_));
  }

  /// Of those that have read the keys of one layer.
  void end_layer(const policy::EndedLayer& ended) override {
    if (hparams_.layer(ended.number).window > 0) return;
    const auto positions = ended.scratch.positions().subspan(kSinks);
    for (const auto& [layer, queries] : rotated_queries_) {
      const auto& spec = hparams_.layer(layer);
      const std::size_t width = as_size(spec.n_head) * as_size(spec.head_dim);
      queries_[as_size(hparams_.place_of[ended.number])].add(std::span(queries).subspan(kSinks * width), positions,
                                                             spec.rope);
    }
    rotated_queries_.clear();
  }

  void add(const policy::LayerView& view, const policy::Scores& scores) {
    std::vector<float> targets;
    for (std::size_t j = kSinks; j < as_size(scores.size()); ++j) {
      for (int head = 0; head < scores.heads(); ++head) {
        const double score = scores.head(head)[j];
        targets.push_back(static_cast<float>(std::log(std::max(kLeastScore, score))));
      }
    }
    const auto& rows = rows_.at(view.number);
    const auto width = as_size(hparams_.n_embd);
    fits_[as_size(view.layer)].add(std::span(rows).subspan(kSinks * width), targets);
    rows_.erase(view.number);
  }

  engine::Calibration finish(std::vector<double>& explained) {
    engine::Calibration out;
    for (std::size_t l = 0; l < fits_.size(); ++l) {
      auto [weights, bias, share] = fits_[l].fit(kAlpha);
      out.layers.push_back({std::move(weights), std::move(bias), queries_[l].statistics()});
      explained.push_back(share);
    }
    return out;
  }

 private:
  /// Each member of a team copies a part.
  static void copy_rows(std::span<const float> from, std::size_t to, Worker worker, std::vector<float>& all) {
    const auto begin = part(from.size(), worker.index, worker.count);
    const auto end = part(from.size(), worker.index + 1, worker.count);
    std::copy_n(from.data() + begin, end - begin, all.data() + to + begin);
  }

  const model::Hparams& hparams_;
  int layer_ = 0;  ///< that is being read
  std::size_t query_width_ = 0;
  bool sees_inputs_ = false;
  bool sees_queries_ = false;
  std::vector<engine::Ridge> fits_;                    ///< [layer without a window]
  std::vector<engine::QuerySums> queries_;             ///< the same
  std::map<int, std::vector<float>> rows_;             ///< of layers that have not been compressed, [tokens][n_embd]
  std::map<int, std::vector<float>> rotated_queries_;  ///< of layers whose keys are still read, [tokens][H_q][d]
};

/// KVzip+ with hardly a budget, which shows all its scores.
CacheOptions watched(Fitting& fitting) {
  auto method = Spec::parse("kvzip:normalize=plus").method();
  method.selection.score.call = [score = method.selection.score.call, &fitting](const policy::LayerView& view,
                                                                                const policy::AlwaysKept& always_kept) {
    auto out = score(view, always_kept);
    fitting.add(view, out);
    return out;
  };
  policy::Registry registry;
  registry.presets.push_back({"watched", "", "", {}, [method](const policy::Options&) { return method; }});
  CacheOptions out;
  out.spec = Spec::parse("watched", registry);
  out.budget = Budget::parse("8");
  return out;
}

/// What comes before the text in such a prompt: that of a text's beginning, less the beginning itself.
std::vector<Token> opening_of(const Model& model, const std::string& text, PromptFormat format) {
  constexpr std::size_t kBeginning = 1024;  // bytes
  Conversation conversation;
  conversation.text = text.substr(0, kBeginning);
  conversation.format = format;
  auto out = model.tokenize(conversation);
  const auto words = model.tokenize(std::string_view(conversation.text));
  out.resize(out.size() - std::min(out.size(), words.size()));
  return out;
}

void check_layers(const model::Hparams& hparams) {
  if (hparams.n_global == 0)
    throw UsageError(
        fmt::format("all {} layers of the model have windows, of which nothing is evicted: there is "
                    "nothing to calibrate",
                    hparams.n_layer));
}

void read(Session::Impl& session, std::span<const Token> prompt, const CacheOptions& options, Fitting& fitting,
          std::function<void(double)> progress) {
  const auto need = session.prefill_bytes(static_cast<int>(prompt.size()), std::span(&options, 1));
  check_memory(need, fmt::format("reading {} tokens", prompt.size()));
  auto context = session.prefill_context(session.begin_pass(prompt.size(), need));
  context.observer = &fitting;
  context.progress = std::move(progress);
  engine::Prefill(std::move(context), prompt, options).run();
}

}  // namespace

void CalibrateOptions::check() const {
  if (tokens < kLeast)
    throw UsageError(fmt::format("cannot calibrate with {} tokens: at least {} are needed", tokens, kLeast));
}

void check_calibration_path(const std::string& path) { check_replaceable(path, engine::kCalibrationFormat.kind()); }

Calibrated calibrate(Session& session, const std::string& text, const std::string& path,
                     const CalibrateOptions& options) {
  options.check();
  auto& impl = session.impl();
  check_layers(impl.hparams);
  check_calibration_path(path);
  const auto tokens = impl.model->tokenize(std::string_view(text));
  if (tokens.size() < as_size(kLeast))
    throw InputError(fmt::format("a text of {} tokens is too short to calibrate with: at least {} are needed",
                                 tokens.size(), kLeast));
  check_memory(Fitting::bytes(impl.hparams), "sums of products of what enters the layers");
  Fitting fitting(impl.hparams);
  const CacheOptions watching = watched(fitting);
  const auto passages = passages_of(static_cast<int>(tokens.size()), options.tokens);
  const auto opening = opening_of(*impl.model, text, options.format);
  const Session::Impl::Stops stops(impl);
  Calibrated out;
  for (const auto& [first, end] : passages) {
    impl.check_stop();
    auto prompt = opening;
    prompt.insert(prompt.end(), tokens.begin() + first, tokens.begin() + end);
    read(impl, prompt, watching, fitting, [&](double done) {
      if (impl.progress) impl.progress((out.passages + done) / static_cast<double>(passages.size()));
    });
    out.tokens += end - first;
    ++out.passages;
  }
  const auto calibration = fitting.finish(out.explained);
  ReplacingFile file(path, Readers::owner, engine::kCalibrationFormat.kind());
  engine::write_calibration(file, calibration, engine::identity_of(impl.hparams, impl.model->hash()));
  file.commit();
  return out;
}

}  // namespace winnow
