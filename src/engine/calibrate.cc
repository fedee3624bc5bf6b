// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "base/file.h"
#include "engine/calibration.h"
#include "engine/model_impl.h"
#include "engine/prompt_reading.h"
#include "engine/session_impl.h"
#include "winnow/calibration.h"
#include "winnow/error.h"
#include "winnow/policy/calibrator.h"
#include "winnow/policy/registry.h"

namespace winnow {

namespace {

/// About the length of the texts that KVzap's authors train with. Passages of one length have comparable scores: a
/// softmax over more tokens gives each of them less.
constexpr int kPassage = 1024;
constexpr int kLeast = 64;  ///< tokens of the shortest passage

/// Token ranges [first, end) of the passages to read from a text of `all` tokens.
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

/// The calibrators of all methods in each layer without a window.
class Fitting : public policy::Observer {
 public:
  explicit Fitting(const model::Hparams& hparams) : hparams_(hparams), parts_(policy::registered_calibrations()) {
    for (int l = 0; l < hparams.n_kv_layer; ++l) {
      if (hparams.layer(l).window > 0) continue;
      auto& of_layer = layers_.emplace_back();
      for (const auto& part : parts_) of_layer.push_back(part.calibrator(size_of(hparams, l)));
    }
  }

  /// Bytes that the calibrators hold.
  static std::size_t bytes(const model::Hparams& hparams) {
    std::size_t out = 0;
    for (const auto& part : policy::registered_calibrations()) {
      for (int l = 0; l < hparams.n_kv_layer; ++l) {
        if (hparams.layer(l).window == 0) out += part.bytes(size_of(hparams, l));
      }
    }
    return out;
  }

  policy::ObserverNeeds needs() const override {
    policy::ObserverNeeds out;
    for (const auto* const calibrator : reading_) {
      out.inputs = out.inputs || calibrator->needs().inputs;
      out.queries = out.queries || calibrator->needs().queries;
    }
    return out;
  }
  void begin_layer(const policy::ObservedLayer& layer) override {
    reading_.clear();
    if (layer.shape.window > 0) return;
    for (const auto& calibrator : of(layer.keys_of)) {
      calibrator->begin_layer(layer);
      reading_.push_back(calibrator.get());
    }
  }
  void see_inputs(const policy::LayerInputs& inputs, Worker worker) override {
    for (auto* const calibrator : reading_) {
      if (calibrator->needs().inputs) calibrator->see_inputs(inputs, worker);
    }
  }
  void see_rows(const policy::LayerRows& rows, Worker worker) override {
    for (auto* const calibrator : reading_) {
      if (calibrator->needs().queries) calibrator->see_rows(rows, worker);
    }
  }
  void end_layer(const policy::EndedLayer& layer) override {
    if (hparams_.layer(layer.number).window > 0) return;
    for (const auto& calibrator : of(layer.number)) calibrator->end_layer(layer);
  }
  void see_scores(const policy::LayerView& view, const policy::Scores& scores) {
    for (const auto& calibrator : of(view.number)) calibrator->see_scores(scores);
  }

  engine::Calibration finish(std::vector<double>& explained) {
    engine::Calibration out;
    for (const auto& of_layer : layers_) {
      policy::LayerCalibration::Facts facts;
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        facts.emplace(parts_[i].name, of_layer[i]->numbers());
        if (const auto share = of_layer[i]->explained()) explained.push_back(*share);
      }
      out.layers.emplace_back(std::move(facts));
    }
    return out;
  }

 private:
  using Calibrators = std::vector<std::unique_ptr<policy::Calibrator>>;

  static policy::CalibratedLayer size_of(const model::Hparams& hparams, int layer) {
    const auto& spec = hparams.layer(layer);
    return {spec.n_head, spec.n_head_kv, spec.head_dim, hparams.n_embd};
  }
  const Calibrators& of(int layer) const { return layers_[as_size(hparams_.place_of[as_size(layer)])]; }

  const model::Hparams& hparams_;
  std::vector<policy::CalibrationPart> parts_;
  std::vector<Calibrators> layers_;           ///< [layer without a window][part]
  std::vector<policy::Calibrator*> reading_;  ///< calibrators of the layer that is being read
};

/// KVzip+ with a minimal budget; passes all its scores to the calibrators.
CacheOptions scored_for(Fitting& fitting) {
  auto method = Spec::parse("kvzip:normalize=plus").method();
  method.selection.score.call = [score = method.selection.score.call, &fitting](const policy::LayerView& view,
                                                                                const policy::AlwaysKept& always_kept) {
    auto out = score(view, always_kept);
    fitting.see_scores(view, out);
    return out;
  };
  policy::Registry registry;
  registry.presets.push_back({"calibration", "", "", {}, [method](const policy::Options&) { return method; }});
  CacheOptions out;
  out.spec = Spec::parse("calibration", registry);
  out.budget = Budget::parse("8");
  return out;
}

/// Tokens that the chat template puts before the text. Found by tokenizing the beginning of the text as a prompt.
std::vector<Token> opening_of(const Model& model, const std::string& text, PromptFormat format) {
  constexpr std::size_t kBeginning = 1024;  // bytes
  Conversation conversation;
  conversation.text = text.substr(0, kBeginning);
  conversation.format = format;
  auto out = model.tokenize(conversation);
  const auto words = model.vocab().tokenize(conversation.text);
  out.resize(out.size() - std::min(out.size(), words.size()));
  return out;
}

void check_layers(const model::Hparams& hparams) {
  if (hparams.n_global == 0)
    throw UsageError(fmt::format(
        "all {} layers of the model have sliding windows, from which no method evicts: there is nothing to calibrate",
        hparams.n_layer));
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
  const auto tokens = impl.model->vocab().tokenize(text);
  if (tokens.size() < as_size(kLeast))
    throw InputError(fmt::format("a text of {} tokens is too short to calibrate with: at least {} are needed",
                                 tokens.size(), kLeast));
  check_memory(Fitting::bytes(impl.hparams), "sums over the passages");
  Fitting fitting(impl.hparams);
  const CacheOptions options_of_cache = scored_for(fitting);
  const auto passages = passages_of(static_cast<int>(tokens.size()), options.tokens);
  const auto opening = opening_of(*impl.model, text, options.format);
  Calibrated out;
  for (const auto& [first, end] : passages) {
    impl.check_stop();
    auto prompt = opening;
    prompt.insert(prompt.end(), tokens.begin() + first, tokens.begin() + end);
    const auto progress = [&](double done) {
      if (impl.progress) impl.progress((out.passages + done) / static_cast<double>(passages.size()));
    };
    engine::PromptReading(impl, {impl, static_cast<int>(prompt.size()), options_of_cache},
                          {.text = prompt, .observer = &fitting, .progress = progress})
        .run();
    out.tokens += end - first;
    ++out.passages;
  }
  const auto calibration = fitting.finish(out.explained);
  ReplacingFile file(path, Readers::owner, engine::kCalibrationFormat.kind());
  engine::write_calibration(file, calibration, engine::identity_of(*impl.model));
  file.commit();
  return out;
}

}  // namespace winnow
