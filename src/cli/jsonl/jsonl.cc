// SPDX-License-Identifier: Apache-2.0
#include "cli/jsonl/jsonl.h"

#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/bad_lines.h"
#include "cli/calibrate/name.h"
#include "cli/run/report.h"
#include "winnow/answer_splitter.h"
#include "winnow/error.h"
#include "winnow/policy/method.h"
#include "winnow/scheduler.h"

namespace winnow::cli {

namespace {

using Json = nlohmann::ordered_json;

/// All settings that the answers of a run depend on, besides the prompts.
std::string settings_of(const RunOptions& o, const Model& model) {
  const auto& sampling = o.generate.sampling;
  Json all{model.hash(),
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
  if (!o.loading.chat_template.empty()) all.push_back(o.loading.chat_template);
  if (!o.generate.grammar.empty()) all.push_back(o.generate.grammar);
  if (o.texts.options.type == TextType::q8_0) all.push_back("q8_0 texts");
  if (o.cache.spec.method().calibration) all.push_back(calibration_name(o.session));
  return dump(all, -1);
}

/// The hash of a list of texts. Includes their lengths, so that different lists have different bytes.
std::string prompt_hash(std::initializer_list<std::string_view> texts) {
  Hasher hasher;
  for (const auto text : texts) {
    const std::size_t length = text.size();
    hasher.add(std::as_bytes(std::span(&length, 1)));
    hasher.add(std::as_bytes(std::span(text)));
  }
  return fmt::format("{:016x}", hasher.value());
}

/// Writes answers in the order of their prompts: each one when all before it are complete.
class OrderedLines {
 public:
  void expect(int number) { lines_.emplace(number, std::nullopt); }
  /// Puts a line in its place; an empty line is skipped.
  void put(int number, std::string line, const JsonlAnswers& to) {
    lines_[number] = std::move(line);
    std::string out;
    while (!lines_.empty() && lines_.begin()->second) {
      out += *lines_.begin()->second;
      lines_.erase(lines_.begin());
    }
    if (!out.empty()) to.append(out);
  }
  /// Writes the lines that are complete.
  void flush(const JsonlAnswers& to) {
    std::string out;
    for (const auto& [number, line] : std::exchange(lines_, {})) out += line.value_or("");
    if (!out.empty()) to.append(out);
  }

 private:
  std::map<int, std::optional<std::string>> lines_;
};

/// A prompt that is being answered, with its facts.
struct Pending {
  std::string hash;
  std::string id;
  int tokens;
  AnswerSplitter splitter;
  CacheStats compressed = {};
};

/// All of the free memory. A part of it is for texts, so that prompts with a common beginning read it once.
SchedulerOptions scheduling(const RunOptions& options) {
  const std::size_t memory = available_memory();
  const auto texts = options.texts.with_free_memory();
  if (texts.memory >= memory)
    throw UsageError(fmt::format("--prefix-memory {} leaves nothing of the free memory of {} for prompts: give less",
                                 format_bytes(texts.memory), format_bytes(memory)));
  return {.parallel = options.parallel,
          .max_itl = std::chrono::milliseconds::max(),
          .memory = memory - texts.memory,
          .texts = texts};
}

class Jsonl {
 public:
  Jsonl(const RunOptions& options, JsonlFiles& files, Session& session)
      : options_(options),
        files_(files),
        session_(session),
        settings_(settings_of(options, session.model())),
        scheduler_(session, scheduling(options)) {}

  void run() {
    try {
      bool more = true;
      do {
        while (more && open_ < options_.parallel) more = take_line();
      } while ((scheduler_.advance() || more) && !unwritten_);
    } catch (const Interrupted&) {
      lines_.flush(files_.answers);
      throw;
    }
    if (unwritten_) std::rethrow_exception(unwritten_);
    const bool is_whole = !unread_ && bad_lines_.count() == 0;
    if (const auto use = scheduler_.prefix_use(); use.found > 0)
      log().info("{} of {} tokens begin a prompt like an earlier one, and were not read again", use.found, use.asked);
    if (is_whole || answered_ + known_ > 0)
      log().info("{} answered, {} known before: {}", answered_, known_, options_.output);
    if (unread_) std::rethrow_exception(unread_);
    if (bad_lines_.count() > 0)
      throw InputError(fmt::format("{} of {} lines of {} failed{}", bad_lines_.count(), files_.prompts.lines(),
                                   options_.jsonl, bad_lines_.named()));
  }

 private:
  /// Returns false at the end of the prompts, or if they cannot be read further; the earlier ones are answered.
  bool take_line() {
    try {
      const auto line = files_.prompts.next();
      if (!line) return false;
      read(*line);
    } catch (const BadLine& error) {
      bad_lines_.add(error.what());
    } catch (const InputError&) {
      unread_ = std::current_exception();
      return false;
    }
    return true;
  }

  /// Gives an unanswered prompt to the scheduler.
  void read(const JsonlPrompt& line) {
    std::string hash = prompt_hash({settings_, line.id, line.prompt.text, line.prompt.question});
    if (files_.answers.take_known(hash)) {
      ++known_;
      return;
    }
    const int number = files_.prompts.lines();
    try {
      add(number, std::move(hash), line.id, line.prompt);
    } catch (const Error& error) {
      note(number, error);
    }
  }

  void note(int number, const std::exception& error) {
    bad_lines_.add(fmt::format("{} line {}: {}", options_.jsonl, number, error.what()));
  }

  void add(int number, std::string hash, const std::string& id, const PromptText& text) {
    const Model& model = session_.model();
    Prompt prompt = model.tokenize(text);
    const int tokens = static_cast<int>(prompt.text.size() + prompt.question.size());
    const auto pending = std::make_shared<Pending>(
        Pending{std::move(hash), id, tokens, {model, before_question(text).with_question(text.question)}});
    Request request = request_of(std::move(prompt), options_.protocol);
    request.text().cache_salt = "";
    request.keep = options_.cache;
    request.generate = pending->splitter.with_format(options_.generate);
    request.events.on_text = [pending](const Cache& cache, std::span<const float>) {
      pending->compressed = cache.stats();
    };
    request.events.on_end = [this, number, pending](const RequestEnd& end) { take(number, *pending, end); };
    scheduler_.add(std::move(request));
    ++open_;
    lines_.expect(number);
  }

  void take(int number, Pending& pending, const RequestEnd& end) {
    --open_;
    std::string line;
    if (end.error) {
      try {
        std::rethrow_exception(end.error);
      } catch (const std::exception& error) {
        note(number, error);
      }
    } else if (end.answers.front().finish != FinishReason::interrupted) {
      line = line_of(pending, end.answers.front());
      ++answered_;
    }
    try {
      lines_.put(number, std::move(line), files_.answers);
    } catch (const InputError&) {
      unwritten_ = std::current_exception();
    }
  }

  std::string line_of(Pending& asked, const Generation& generation) const {
    asked.splitter.add(generation.text);
    asked.splitter.end();
    const Message& message = asked.splitter.message();
    Json json{{"hash", asked.hash},
              {"id", asked.id},
              {"spec", options_.cache.spec.print()},
              {"answer", message.content},
              {"finish_reason", generation.finish == FinishReason::stop ? "stop" : "length"},
              {"tokens", {{"prompt", asked.tokens}, {"generated", generation.tokens.size()}}},
              {"cache",
               {{"entries_per_head_mean", asked.compressed.entries_per_head_mean},
                {"bytes_held", asked.compressed.bytes_held},
                {"bytes_full", asked.compressed.bytes_full}}}};
    if (!message.reasoning.empty()) json["reasoning"] = message.reasoning;
    return dump(json, -1);
  }

  const RunOptions& options_;
  JsonlFiles& files_;
  Session& session_;
  std::string settings_;
  Scheduler scheduler_;
  OrderedLines lines_;
  int open_ = 0;  ///< prompts in the scheduler
  int answered_ = 0;
  int known_ = 0;  ///< prompts that earlier runs have answered
  BadLines bad_lines_;
  std::exception_ptr unread_;     ///< the error of reading prompts
  std::exception_ptr unwritten_;  ///< the error of writing answers
};

}  // namespace

void run_jsonl(const RunOptions& options, JsonlFiles& files, Session& session) { Jsonl(options, files, session).run(); }

}  // namespace winnow::cli
