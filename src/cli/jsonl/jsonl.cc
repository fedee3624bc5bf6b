// SPDX-License-Identifier: Apache-2.0
#include "cli/jsonl/jsonl.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "cli/run/report.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBatch = 16;

/// What the answers of a whole run depend on, besides the prompt.
std::string settings_of(const RunOptions& o, const Model& model) {
  const auto& sampling = o.generate.sampling;
  const Json all{model.hash(),
                 o.loading.rope_freq_base,
                 o.loading.rope_scaling,
                 o.session.precision,
                 o.cache.spec.print_full(),
                 o.cache.budget ? o.cache.budget->print() : "",
                 o.cache.kv_type.print(),
                 o.protocol,
                 o.prompt.system,
                 o.prompt.format,
                 o.prompt.control,
                 o.generate.max_tokens,
                 o.generate.stop,
                 o.generate.end,
                 sampling.temperature,
                 sampling.top_k,
                 sampling.top_p,
                 sampling.min_p,
                 sampling.repeat_penalty,
                 sampling.seed};
  return dump(all, -1);
}

/// The hash of a list of texts. Lengths are hashed, too, so that different lists have different bytes.
std::string hash_of(std::initializer_list<std::string_view> texts) {
  Hasher hasher;
  for (const auto text : texts) {
    const std::size_t length = text.size();
    hasher.add(std::as_bytes(std::span(&length, 1)));
    hasher.add(std::as_bytes(std::span(text)));
  }
  return fmt::format("{:016x}", hasher.value());
}

/// A prompt that was read and is to be answered.
struct Pending {
  std::string hash;
  std::string id;
  AnswerStart start;
  int tokens;
};

class Jsonl {
 public:
  Jsonl(const RunOptions& options, JsonlFiles& files, Session& session)
      : options_(options), files_(files), session_(session), settings_(settings_of(options, session.model())) {}

  void run() {
    try {
      while (take_line()) {
        if (batch_.size() == kBatch) answer_batch();
      }
    } catch (const InputError&) {  // the prompts cannot be read further: those before are answered
      answer_batch();
      throw;
    }
    answer_batch();
    if (failed_ > 0)
      throw InputError(
          fmt::format("{} of {} lines of {} could not be run", failed_, files_.prompts.lines(), options_.jsonl));
  }

 private:
  /// False at the end of the prompts.
  bool take_line() {
    try {
      const auto line = files_.prompts.next();
      if (!line) return false;
      read(*line);
    } catch (const BadLine& error) {
      note(error.what());
    }
    return true;
  }

  /// Reads a prompt that was not answered yet.
  void read(const JsonlPrompt& line) {
    std::string hash = hash_of({settings_, line.id, line.prompt.text, line.prompt.question});
    if (files_.answers.take_known(hash)) return;
    try {
      batch_.push_back(prefill(std::move(hash), line.id, session_.model().tokenize(line.prompt)));
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      note(fmt::format("{} line {}: {}", options_.jsonl, files_.prompts.lines(), error.what()));
    }
  }

  void note(const std::string& what) {
    ++failed_;
    log().error("{}", what);
  }

  Pending prefill(std::string hash, const std::string& id, Prompt prompt) {
    const int tokens = static_cast<int>(prompt.text.size() + prompt.question.size());
    Questions question(session_, prompt.text, {std::move(prompt.question)}, options_.protocol,
                       std::span(&options_.cache, 1));
    return {std::move(hash), id, question.ask(0), tokens};
  }

  /// Decodes the batch and writes the answers that were finished, also when it was interrupted.
  void answer_batch() {
    if (batch_.empty()) return;
    auto batch = std::exchange(batch_, {});
    std::vector<Cache*> caches;
    std::vector<std::vector<float>> logits;
    for (auto& pending : batch) {
      caches.push_back(&pending.start.caches.front());
      logits.push_back(std::move(pending.start.logits.front()));
    }
    const auto generations = generate(session_, caches, logits, options_.generate);
    std::string lines;
    bool interrupted = false;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const bool finished = generations[i].finish != FinishReason::interrupted;
      if (finished) lines += line_of(batch[i], generations[i]);
      interrupted = interrupted || !finished;
    }
    files_.answers.append(lines);
    if (interrupted) throw Interrupted("interrupted");
  }

  std::string line_of(const Pending& asked, const Generation& generation) const {
    const CacheStats& stats = asked.start.stats.front();
    const Json json{{"hash", asked.hash},
                    {"id", asked.id},
                    {"spec", options_.cache.spec.print()},
                    {"answer", generation.text},
                    {"finish_reason", generation.finish == FinishReason::stop ? "stop" : "length"},
                    {"tokens", {{"prompt", asked.tokens}, {"generated", generation.tokens.size()}}},
                    {"cache",
                     {{"entries_per_head_mean", stats.entries_per_head_mean},
                      {"bytes_held", stats.bytes_held},
                      {"bytes_full", stats.bytes_full}}}};
    return dump(json, -1);
  }

  const RunOptions& options_;
  JsonlFiles& files_;
  Session& session_;
  std::string settings_;
  std::vector<Pending> batch_;
  int failed_ = 0;
};

}  // namespace

void run_jsonl(const RunOptions& options, JsonlFiles& files, Session& session) { Jsonl(options, files, session).run(); }

}  // namespace winnow::cli
