// SPDX-License-Identifier: Apache-2.0
#include "winnow/session.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "attention/cpu/attention.h"
#include "attention/device/decode.h"
#include "attention/device/prefill.h"
#include "base/as_size.h"
#include "base/cores.h"
#include "base/cpu.h"
#include "base/file.h"
#include "engine/extension.h"
#include "engine/kept_texts.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/past.h"
#include "engine/precision.h"
#include "engine/prompt_reading.h"
#include "engine/saved.h"
#include "engine/sequence.h"
#include "engine/session_impl.h"
#include "engine/stages.h"
#include "network/bf16_kernel.h"
#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow {

namespace {

SessionOptions with_defaults(SessionOptions options) {
  options.check();
  if (options.threads == 0) options.threads = usable_cores();
  return options;
}

network::Packing packing_of(const SessionOptions& options, const model::Weights& weights) {
  if (weights.device() != nullptr && options.pack != Pack::automatic) {
    throw UsageError(
        fmt::format("weights can only be packed on the CPU, not on {}: use pack auto", weights.device()->name()));
  }
  if (options.precision == Precision::f32 || weights.device() != nullptr) return network::Packing::none;
  switch (options.pack) {
    case Pack::layer:
      return network::Packing::layer;
    case Pack::resident:
      return network::Packing::resident;
    case Pack::automatic:
      break;
  }
  return network::Packing::by_rows;
}

std::unique_ptr<attention::PrefillAttention> prefill_attention_of(const SessionOptions& options, MemoryAccount& account,
                                                                  device::Device* device) {
  auto cpu =
      std::make_unique<attention::cpu::Prefill>(account, options.threads, engine::compute_type_of(options.precision));
  if (device == nullptr || !device->has_kernels()) return cpu;
  return std::make_unique<attention::device::Prefill>(*device, std::move(cpu));
}

std::unique_ptr<attention::DecodeAttention> decode_attention_of(const SessionOptions& options, MemoryAccount& account,
                                                                device::Device* device) {
  auto cpu = std::make_unique<attention::cpu::Decode>(account, options.threads);
  if (device == nullptr || !device->has_kernels()) return cpu;
  return std::make_unique<attention::device::Decode>(*device, account, std::move(cpu));
}

std::optional<engine::Calibration> calibration_of(const SessionOptions& options, const Model& model) {
  if (options.calibration.empty()) return std::nullopt;
  const auto& hparams = model.impl().weights->hparams();
  const FileSource file(options.calibration);
  return engine::read_calibration(file, engine::identity_of(model), hparams);
}

/// Checks that the lanes can be loaded again, unlike a sparse cache of documents, which keeps fewer entries than its
/// method.
void check_whole(const engine::Sequence& sequence) {
  if (sequence.method().evicts()) return;
  for (int layer = 0; layer < sequence.layers(); ++layer) {
    const auto& lanes = sequence.lanes(layer);
    if (sequence.hparams().layer(layer).window > 0) continue;
    for (int head = 0; head < lanes.shape().kv_heads; ++head) {
      const int entries = lanes.length(head);
      if (entries == sequence.seen) continue;
      throw UsageError(
          fmt::format("a cache of documents that keeps {} of {} tokens cannot be saved", entries, sequence.seen));
    }
  }
}

/// Checks that the windows still have all entries that the first of the last `count` tokens sees.
void check_windows_reach(const engine::Sequence& sequence, int count) {
  if (count == sequence.seen) return;
  for (const auto& kind : sequence.hparams().kinds) {
    if (kind.window == 0 || sequence.seen <= kind.window) continue;
    throw UsageError(
        fmt::format("cannot compress the last {} of {} tokens: a sliding window of {} has lost the entries before "
                    "them; pass a mark taken where they begin",
                    count, sequence.seen, kind.window));
  }
}

}  // namespace

void SessionOptions::check() const {
  if (threads < 0) throw UsageError(fmt::format("cannot run on {} threads: give at least 1", threads));
  if (chunk < 1) throw UsageError(fmt::format("cannot read a prompt in chunks of {} tokens: give at least 1", chunk));
  if (precision == Precision::bf16 && !multiplies_bf16())
    throw UsageError("precision bf16 is not possible: this machine has neither AMX nor AVX-512-BF16 (use auto or f32)");
  if (pack == Pack::automatic) return;
  const char* const name = pack == Pack::layer ? "layer" : "resident";
  if (precision == Precision::f32)
    throw UsageError(fmt::format("pack {} and precision f32 exclude each other: packed weights are bf16", name));
  if (!multiplies_bf16())
    throw UsageError(
        fmt::format("pack {} is not possible: packed weights are bf16, and this machine has neither AMX nor "
                    "AVX-512-BF16 (use auto)",
                    name));
  if (!network::Bf16Kernel::available())
    throw UsageError(fmt::format("pack {} is not possible: this winnow was built without oneDNN (use auto)", name));
}

void SessionOptions::check(const CacheOptions& cache) const {
  if (!calibration.empty() || !cache.spec.method().calibration.has_value()) return;
  throw UsageError(
      fmt::format("{} needs a calibration of the model: make one with winnow calibrate and give it with --calibration",
                  method_label(cache.spec.print())));
}

Session::Impl::Impl(std::shared_ptr<const Model> m, const SessionOptions& o)
    : model(std::move(m)),
      options(with_defaults(o)),
      hparams(model->impl().weights->hparams()),
      calibration(calibration_of(options, *model)),
      executor(*model->impl().weights, options.threads, account, packing_of(options, *model->impl().weights)),
      prefill_attention(prefill_attention_of(options, account, device())),
      decode_attention(decode_attention_of(options, account, device())),
      stepper(executor, *decode_attention, hparams, account, calibration ? &*calibration : nullptr,
              device() == nullptr ? StepRows::together : options.rows) {
  const auto& kept = options.texts;
  if (kept.memory > 0 || !kept.place.empty()) texts = std::make_unique<engine::KeptTexts>(*this, kept);
}

Session::Impl::~Impl() = default;

network::Pass Session::Impl::begin_pass(std::size_t rows, std::size_t need) {
  const std::size_t available = available_memory();
  return executor.begin_pass(static_cast<int>(rows), available > need ? available - need : 0);
}

void Session::Impl::check(std::span<const Token> tokens) const {
  if (tokens.empty()) throw InputError("the prompt is empty: there is nothing to read");
  for (const Token token : tokens) {
    if (token < 0 || token >= hparams.n_vocab) {
      throw InputError(fmt::format("token {} is not in the vocabulary of {} tokens", token, hparams.n_vocab));
    }
  }
}

device::Device* Session::Impl::device() const { return model->impl().weights->device(); }

void Session::Impl::check_stop() const {
  if (stop && stop()) throw Interrupted("interrupted");
}

std::vector<Prefilled> Session::Impl::prefill(std::span<const Token> text,
                                              std::span<const std::vector<Token>> questions,
                                              std::span<const CacheOptions> caches) {
  for (const auto& question : questions) {
    check(text.empty() ? std::span<const Token>(question) : text);
    if (!question.empty()) check(question);
  }
  for (const auto& c : caches) c.check();
  const auto sizes = engine::sizes_of(text.size(), questions);
  if (questions.size() != 1) return engine::read_prompts(*this, sizes, {.text = text, .questions = questions}, caches);
  std::vector<Token> whole(text.begin(), text.end());
  whole.insert(whole.end(), questions.front().begin(), questions.front().end());
  return engine::read_prompts(*this, sizes, {.text = whole}, caches);
}

void Session::Impl::compress(engine::Sequence& sequence, std::span<const Token> tokens,
                             const engine::WindowLanes* windows) {
  check(tokens);
  const int count = static_cast<int>(tokens.size());
  if (count > sequence.seen)
    throw UsageError(fmt::format("cannot compress {} tokens of a sequence that has seen {}", count, sequence.seen));
  const auto later = engine::options_later(sequence.options(), hparams, count);
  if (!later) return;
  if (windows == nullptr) check_windows_reach(sequence, count);
  const engine::Past past(sequence, sequence.seen - count, windows);
  const auto type = engine::scratch_type(options.precision, {&*later, 1});
  engine::ReadingPlan plan(*this, {.text = count, .past = past.size(type)}, {&*later, 1});
  auto read = engine::PromptReading(*this, std::move(plan), {.text = tokens, .past = &past}).run();
  sequence.put_from(past.tokens(), std::move(read.front().caches.front().impl()));
}

std::size_t Session::Impl::step(engine::Sequence& sequence, std::span<const Token> tokens, std::span<float> logits) {
  const std::size_t rows_at_once = sequence.method().changes_while_decoding() ? 1 : engine::kExtendRows;
  std::vector<engine::StepRow> rows;
  for (const Token token : tokens.first(std::min(rows_at_once, tokens.size())))
    rows.push_back({&sequence, token, sequence.seen + static_cast<std::int32_t>(rows.size())});
  stepper.run(rows, rows.size() == tokens.size() ? logits : std::span<float>());
  return rows.size();
}

Session::Session(std::shared_ptr<const Model> model, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}
Session::~Session() = default;

Prefilled Session::prefill(std::span<const Token> tokens, std::span<const CacheOptions> caches) {
  const std::vector<std::vector<Token>> nothing_more(1);
  auto one = impl_->prefill(tokens, nothing_more, caches);
  return std::move(one.front());
}

std::vector<Prefilled> Session::prefill(std::span<const Token> text, std::span<const std::vector<Token>> questions,
                                        std::span<const CacheOptions> caches) {
  return impl_->prefill(text, questions, caches);
}

std::vector<float> Session::extend(Cache& cache, std::span<const Token> tokens) {
  auto& s = *impl_;
  s.check(tokens);
  engine::Extension extension(s, cache.impl(), tokens);
  do {
    s.check_stop();
  } while (extension.advance());
  return extension.take_logits();
}

void Session::compress(Cache& cache, std::span<const Token> tokens) { impl_->compress(cache.impl(), tokens, nullptr); }

void Session::compress(Cache& cache, std::span<const Token> tokens, const CacheMark& begin) {
  const auto& sequence = cache.impl();
  if (as_size(begin.tokens_seen) + tokens.size() != as_size(sequence.seen)) {
    throw UsageError(
        fmt::format("cannot compress {} tokens of a sequence that has seen {}, from a mark after {} tokens",
                    tokens.size(), sequence.seen, begin.tokens_seen));
  }
  impl_->compress(cache.impl(), tokens, begin.windows.get());
}

void Session::step(std::span<Cache* const> caches, std::span<const Token> tokens, std::span<float> logits) {
  auto& s = *impl_;
  s.check(tokens);
  if (caches.size() != tokens.size() || logits.size() != tokens.size() * as_size(s.hparams.n_vocab)) {
    throw UsageError(fmt::format(
        "a step of {} caches has {} tokens and room for {} logits: give one token and one row of logits for each cache",
        caches.size(), tokens.size(), logits.size()));
  }
  s.check_stop();
  std::vector<engine::StepRow> rows;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    auto& sequence = caches[i]->impl();
    rows.push_back({&sequence, tokens[i], sequence.seen});
  }
  s.stepper.run(rows, logits);
}

void Session::save(const std::string& path, const Cache& cache, std::span<const float> logits,
                   const Transcript& transcript) const {
  const auto& sequence = cache.impl();
  impl_->check(transcript.tokens);
  if (transcript.tokens.size() < as_size(sequence.seen)) {
    throw UsageError(fmt::format("a transcript of {} tokens does not belong to a cache that has seen {}",
                                 transcript.tokens.size(), sequence.seen));
  }
  check_whole(sequence);
  ReplacingFile file(path, Readers::owner, engine::kSavedFormat.kind());
  engine::write_sequence(file, sequence, engine::identity_of(*impl_->model), logits, transcript);
  file.commit();
}

Restored Session::load(const std::string& path) {
  const FileSource file(path);
  auto restored = engine::read_sequence(file, engine::identity_of(*impl_->model), impl_->hparams, impl_->account);
  impl_->options.check(restored.cache.options());
  return restored;
}

std::size_t Session::prefill_bytes(int tokens, std::span<const CacheOptions> caches) const {
  return engine::ReadingPlan(*impl_, {.text = tokens}, caches).bytes().all() + impl_->executor.packed_bytes(tokens);
}

std::int64_t Session::tokens_passed() const { return impl_->executor.layer_rows() / impl_->hparams.n_layer; }

MemoryUse Session::memory() const { return {impl_->account.held(), impl_->account.peak()}; }
void Session::reset_peak() { impl_->account.reset_peak(); }
void Session::on_progress(std::function<void(double)> progress) { impl_->progress = std::move(progress); }
void Session::on_stop(std::function<bool()> stop) { impl_->stop = std::move(stop); }
const Model& Session::model() const { return *impl_->model; }
const SessionOptions& Session::options() const { return impl_->options; }
int Session::threads() const { return impl_->options.threads; }

}  // namespace winnow
