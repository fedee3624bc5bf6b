// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "cli/commands.h"
#include "cli/jsonl/jsonl.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run/answering.h"
#include "cli/run/report.h"
#include "cli/wording.h"
#include "winnow/error.h"
#include "winnow/forecast.h"

namespace winnow::cli {

namespace {

/// One text and its questions.
class Run {
 public:
  Run(const RunOptions& options, Session& session, double load_ms)
      : options_(options), session_(session), load_ms_(load_ms) {
    if (!options.load_kv.empty()) {
      load();
      return;
    }
    conversation_ = conversation_of(options);
    tokenize();
    seen_ = text_.size();
  }

  void run() {
    warn_about_length();
    if (options_.dry_run) return dry_run();
    session_.reset_peak();
    if (only_saves()) {
      read_text_alone();
    } else {
      answer_all();
    }
    if (options_.json) write_stdout(dump(whole_record(), 2));
    for (const auto& answer : answers_) {
      if (answer.generation.finish == FinishReason::interrupted) throw Interrupted("interrupted");
    }
  }

 private:
  /// True if the text is only read and saved, for later questions.
  bool only_saves() const { return !options_.save_kv.empty() && options_.questions.empty(); }
  /// True if the saved cache holds only the text, ready for any question.
  bool saves_text() const {
    return only_saves() || (!options_.save_kv.empty() && options_.protocol == Protocol::agnostic && !text_.empty());
  }

  void tokenize() {
    const Model& model = session_.model();
    if (only_saves()) {
      text_ = model.tokenize(conversation_);
      return;
    }
    questions_ = options_.questions.empty() ? std::vector<std::string>{""} : options_.questions;
    auto [text, questions] = model.tokenize(conversation_, questions_);
    text_ = std::move(text);
    question_tokens_ = std::move(questions);
  }

  void load() {
    const auto begin = Clock::now();
    restored_ = session_.load(options_.load_kv);
    restore_ms_ = ms_since(begin);
    seen_ = as_size(restored_->cache.stats().tokens_seen);
    questions_ = options_.questions.empty() ? std::vector<std::string>{""} : options_.questions;
    for (const auto& question : questions_) {
      question_tokens_.push_back(after_loaded(question));
      if (question_tokens_.back().empty() && restored_->logits.empty())
        throw InputError(fmt::format("{} holds no logits to answer from: give a question (-p)", options_.load_kv));
    }
  }

  /// The tokens to read after a loaded cache: those that it has not seen, and the question. Without a question, the
  /// open question of the loaded conversation is answered.
  std::vector<Token> after_loaded(const std::string& question) const {
    const auto& [conversation, tokens] = restored_->transcript;
    std::vector<Token> out(tokens.begin() + static_cast<std::ptrdiff_t>(seen_), tokens.end());
    if (question.empty() && conversation.awaits_answer()) return out;
    if (question.empty() && conversation.last() != nullptr)
      throw InputError(fmt::format("{} ends with an answer: give a question (-p)", options_.load_kv));
    const Turn turn = session_.model().turn(conversation, question);
    if (turn.past == Past::rewritten) log().warn("the chat template renders earlier messages differently than before");
    out.insert(out.end(), turn.tokens.begin(), turn.tokens.end());
    return out;
  }

  /// The transcript of a saved cache.
  Transcript transcript(std::size_t index) const {
    if (saves_text()) return {conversation_, text_};
    Transcript out{conversation_.with_question(questions_[index]), text_};
    out.tokens.insert(out.tokens.end(), question_tokens_[index].begin(), question_tokens_[index].end());
    return out;
  }

  void save(const Cache& cache, std::span<const float> logits, std::size_t index) {
    if (options_.save_kv.empty()) return;
    const auto begin = Clock::now();
    const std::string path = numbered(options_.save_kv, index);
    session_.save(path, cache, logits, transcript(index));
    const auto bytes = std::filesystem::file_size(path);
    saved_.push_back(
        {{"path", path}, {"bytes", bytes}, {"tokens", cache.stats().tokens_seen}, {"save_ms", ms_since(begin)}});
    if (!options_.quiet && !options_.json) tell(saved_line(path, bytes, cache.stats()));
  }

  /// Numbers the path if there are several caches: one for each question that is seen before compression.
  std::string numbered(const std::string& path, std::size_t index) const {
    const bool several = questions_.size() > 1 && options_.protocol == Protocol::aware && !restored_;
    return several ? fmt::format("{}.{}", path, index + 1) : path;
  }

  nlohmann::ordered_json whole_record() const {
    auto out = record(options_, session_, answers_, load_ms_);
    out["read_tokens"] = read_tokens_;
    if (!saved_.empty()) out["saved"] = saved_;
    if (restored_) out["loaded"] = {{"path", options_.load_kv}, {"tokens", seen_}, {"load_kv_ms", restore_ms_}};
    return out;
  }

  std::size_t longest() const {
    std::size_t most = 0;
    for (const auto& question : question_tokens_) most = std::max(most, question.size());
    return seen_ + most;
  }

  void warn_about_length() const {
    const auto context = as_size(session_.model().info().context);
    if (longest() > context) {
      log().warn("the prompt has {} tokens, more than the model's context of {}: answers may be worse", longest(),
                 context);
    }
  }

  void dry_run() {
    const Forecast told = forecast(session_, text_, question_tokens_, options_.protocol, options_.cache,
                                   only_saves() ? 0 : options_.generate.max_tokens);
    // The forecast does not include weights, program and libraries, which are resident by now.
    const std::size_t resident = resident_bytes();
    const std::size_t process = resident - std::min(resident, session_.memory().held) + told.peak_bytes;
    if (options_.json) {
      const nlohmann::ordered_json out{{"tokens", longest()},           {"read_tokens", told.rows},
                                       {"peak_bytes", told.peak_bytes}, {"rss_peak_bytes", process},
                                       {"prefill_ms", told.read_ms()},  {"spec", options_.cache.spec.print()}};
      write_stdout(dump(out, 2));
      return;
    }
    write_stdout(forecast_lines(told, tokens_to_read(), process));
  }

  /// Number of tokens of the text and of all questions.
  std::int64_t tokens_to_read() const {
    auto out = static_cast<std::int64_t>(text_.size());
    for (const auto& question : question_tokens_) out += static_cast<std::int64_t>(question.size());
    return out;
  }

  void read_text_alone() {
    const auto text = session_.prefill(text_, std::span(&options_.cache, 1));
    read_tokens_ = session_.tokens_passed();
    save(text.caches.front(), text.logits, 0);
    dump_kept(text.caches.front(), 0);
  }

  Questions read() {
    if (!restored_) return {session_, text_, question_tokens_, options_.protocol, std::span(&options_.cache, 1)};
    Prefilled text{{}, std::move(restored_->logits)};
    text.caches.push_back(std::move(restored_->cache));
    return {session_, std::move(text), question_tokens_};
  }

  void answer_all() {
    const auto begin = Clock::now();
    Questions questions = read();
    const double read_ms = restored_ ? restore_ms_ : ms_since(begin);
    read_tokens_ = session_.tokens_passed();
    if (questions.text() != nullptr) keep(questions.text()->caches.front(), questions.text()->logits, 0);
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const auto question_begin = Clock::now();
      const std::int64_t passed = session_.tokens_passed();
      AnswerStart start = questions.ask(i);
      read_tokens_ += session_.tokens_passed() - passed;
      const double ms = read_ms / static_cast<double>(questions.size()) + ms_since(question_begin);
      if (questions.text() == nullptr) keep(start.caches.front(), start.logits.front(), i);
      answer(i, start, ms);
    }
  }

  /// Writes the files of caches that have just been compressed.
  void keep(const Cache& cache, std::span<const float> logits, std::size_t index) {
    if (!restored_) save(cache, logits, index);
    dump_kept(cache, index);
  }

  void dump_kept(const Cache& cache, std::size_t index) const {
    if (options_.dump_kept.empty()) return;
    const auto& read = restored_ ? restored_->transcript.conversation : conversation_;
    const auto& model = session_.model();
    write_file(numbered(options_.dump_kept, index),
               kept_json(model.info(), cache, cache.stats().tokens_seen, identity_of_text(model, read)), kKeptFile);
  }

  /// The conversation up to a question. Without one, that of the loaded cache, with its open question.
  Conversation asked(const std::string& question) const {
    const Conversation& read = restored_ ? restored_->transcript.conversation : conversation_;
    return question.empty() && read.awaits_answer() ? read : read.with_question(question);
  }

  void answer(std::size_t index, AnswerStart& start, double prefill_ms) {
    Answer a;
    a.question = questions_[index];
    a.after_prefill = start.stats.front();
    a.memory_after_prefill = session_.memory();
    a.prompt_tokens = static_cast<int>(seen_ + question_tokens_[index].size());
    a.cached_tokens = start.cached_tokens;
    a.read_tokens = restored_ ? static_cast<int>(question_tokens_[index].size()) : a.prompt_tokens - a.cached_tokens;
    a.prefill_ms = prefill_ms;
    answer_and_show(session_, start.caches.front(), start.logits.front(), options_,
                    {session_.model(), asked(questions_[index])}, a);
    if (!options_.quiet && !options_.json) std::fputs(summary(options_, a, load_ms_).c_str(), stderr);
    answers_.push_back(std::move(a));
  }

  const RunOptions& options_;
  Session& session_;
  double load_ms_;
  std::optional<Restored> restored_;  ///< with --load-kv
  double restore_ms_ = 0;
  std::size_t seen_ = 0;          ///< tokens before the question
  std::int64_t read_tokens_ = 0;  ///< tokens that passed through all layers, counted each time, without answers
  nlohmann::ordered_json saved_ = nlohmann::ordered_json::array();
  Conversation conversation_;  ///< before any question; unused with --load-kv
  std::vector<std::string> questions_;
  std::vector<Token> text_;
  std::vector<std::vector<Token>> question_tokens_;
  std::vector<Answer> answers_;
};

}  // namespace

namespace {

/// One text is read once, so memory for texts is only of use with a place that outlasts the command. Many prompts have
/// the scheduler's.
SessionOptions session_options(const RunOptions& options) {
  SessionOptions out = options.session;
  if (options.jsonl.empty() && !options.dry_run && !options.texts.options.place.empty())
    out.texts = options.texts.with_free_memory();
  return out;
}

}  // namespace

void run_command(const RunOptions& options) {
  std::optional<JsonlFiles> files;
  if (!options.jsonl.empty()) files.emplace(options);
  const auto begin = Clock::now();
  const auto model = Model::load(path_of(options.model), options.loading);
  Session session(model, session_options(options));
  const double load_ms = ms_since(begin);
  session.on_stop(interrupted);
  if (!options.quiet) show_progress(session);
  if (files) {
    run_jsonl(options, *files, session);
  } else {
    Run(options, session, load_ms).run();
  }
}

}  // namespace winnow::cli
