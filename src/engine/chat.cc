// SPDX-License-Identifier: Apache-2.0
#include "winnow/chat.h"

#include <spdlog/fmt/fmt.h>

#include <span>
#include <utility>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/sequence.h"
#include "winnow/error.h"

namespace winnow {

Chat::Chat(Session& session, Conversation conversation, CacheOptions cache, GenerateOptions generate, Protocol protocol)
    : session_(session),
      cache_options_(std::move(cache)),
      generate_(std::move(generate)),
      protocol_(protocol),
      transcript_{std::move(conversation), {}} {}

Reply Chat::say(const std::string& words, const OnAnswerPart& on_part) {
  Asked next = with(words);
  warn_about_length(next.transcript.tokens.size());
  std::optional<Cache> before;
  if (reads_anew()) before = std::exchange(cache_, std::nullopt);
  std::optional<CacheMark> mark;
  if (cache_) {
    mark = cache_->mark();
    begin_turn(*mark);
  }
  try {
    return read_and_answer(std::move(next), on_part);
  } catch (...) {
    if (mark) {
      cache_->go_back(std::move(*mark));
    } else {
      cache_ = std::move(before);
    }
    throw;
  }
}

Reply Chat::read_and_answer(Asked asked, const OnAnswerPart& on_part) {
  Reply reply;
  const auto begin = Clock::now();
  const auto logits = read(asked, reply);
  auto& next = asked.transcript;
  reply.read_ms = ms_since(begin);
  const auto answer_begin = Clock::now();
  answer(next.conversation, logits, on_part, reply);
  reply.answer_ms = ms_since(answer_begin);
  next.conversation.messages.push_back(reply.message);
  const auto& generated = reply.generation.tokens;
  next.tokens.insert(next.tokens.end(), generated.begin(), generated.end());
  transcript_ = std::move(next);
  return reply;
}

bool Chat::compresses() const { return cache_options_.spec.method().schedule == policy::Schedule::once; }

void Chat::begin_turn(const CacheMark& mark) {
  if (compresses() && mark.windows && as_size(mark.tokens_seen) == compressed_)
    turn_begin_ = CacheMark{mark.tokens_seen, {}, mark.windows};
}

Chat::Asked Chat::with(const std::string& words) {
  const Model& model = session_.model();
  Asked out{transcript_};
  auto& next = out.transcript;
  const bool is_first = transcript_.conversation.last() == nullptr;
  const bool raw = transcript_.conversation.format == PromptFormat::raw;
  const std::string spoken =
      raw ? (is_first ? "" : "\n") + words + "\n" : words;  // without a template, messages are lines
  next.conversation = transcript_.conversation.with_question(spoken);
  if (!transcript_.tokens.empty()) {
    const Turn turn = model.turn(transcript_.conversation, spoken);
    if (turn.past == Past::unchanged) {
      next.tokens.insert(next.tokens.end(), turn.tokens.begin(), turn.tokens.end());
      out.question = turn.tokens.size();
      return out;
    }
    if (!std::exchange(rewritten_, true))
      log().warn(
          "the chat template renders earlier messages differently in later turns (most leave out the thinking), so "
          "each turn reads the conversation again from where it differs");
    cache_.reset();
  }
  auto [tokens, questions] = model.tokenize(transcript_.conversation, std::span(&spoken, 1));
  out.question = questions.front().size();
  next.tokens = std::move(tokens);
  next.tokens.insert(next.tokens.end(), questions.front().begin(), questions.front().end());
  return out;
}

void Chat::warn_about_length(std::size_t tokens) {
  const int context = session_.model().info().context;
  if (warned_ || tokens <= as_size(context)) return;
  warned_ = true;
  log().warn("the conversation has {} tokens, more than the model's context of {}: answers may be worse", tokens,
             context);
}

std::vector<float> Chat::read(const Asked& asked, Reply& reply) {
  if (!cache_) return read_anew(asked, reply);
  const auto unread = std::span(asked.transcript.tokens).subspan(as_size(cache_->stats().tokens_seen));
  reply.tokens_read = static_cast<int>(unread.size());
  return session_.extend(*cache_, unread);
}

/// Methods are told of the question only if they can choose again when the next one comes.
std::vector<float> Chat::read_anew(const Asked& asked, Reply& reply) {
  const std::span tokens(asked.transcript.tokens);
  const auto text = tokens.first(tokens.size() - (reads_anew() ? asked.question : 0));
  const std::vector<Token> question(tokens.begin() + std::ssize(text), tokens.end());
  auto read = std::move(session_.prefill(text, std::span(&question, 1), std::span(&cache_options_, 1)).front());
  reply.cached_tokens = read.cached_tokens;
  reply.tokens_read = static_cast<int>(tokens.size()) - read.cached_tokens;
  cache_ = std::move(read.caches.front());
  begins_with_cache_ = false;
  compressed_ = tokens.size();
  turn_begin_.reset();
  if (compresses() && !reads_anew()) begin_turn({static_cast<int>(compressed_), {}, cache_->impl().copy_windows()});
  return std::move(read.logits);
}

void Chat::answer(const Conversation& asked, const std::vector<float>& logits, const OnAnswerPart& on_part,
                  Reply& reply) {
  AnswerSplitter splitter(session_.model(), asked);
  const auto pass = [&](const AnswerPart& part) {
    if (on_part) on_part(part);
  };
  Cache* const cache = &*cache_;
  reply.generation =
      std::move(generate(session_, std::span(&cache, 1), std::span(&logits, 1), splitter.with_format(generate_),
                         [&](int, std::string_view bytes) { pass(splitter.add(bytes)); })
                    .front());
  pass(splitter.end());
  reply.message = splitter.message();
}

void Chat::compress_turn() {
  if (reads_anew()) return;
  const std::size_t seen = cache_ ? as_size(cache_->stats().tokens_seen) : compressed_;
  if (seen <= compressed_) return;
  try {
    const auto turn = std::span(transcript_.tokens).subspan(compressed_, seen - compressed_);
    if (turn_begin_) {
      session_.compress(*cache_, turn, *turn_begin_);
    } else {
      session_.compress(*cache_, turn);
    }
    compressed_ = seen;
    turn_begin_.reset();
  } catch (const Interrupted&) {
    log().info("the last {} tokens are not compressed yet", seen - compressed_);
  }
}

void Chat::keep_by(const CacheOptions& cache) {
  cache_options_ = cache;
  begins_with_cache_ = false;
  cache_.reset();
}

void Chat::reset() {
  std::erase_if(transcript_.conversation.messages, [](const Message& m) { return m.role != Role::system; });
  transcript_.tokens.clear();
  begins_with_cache_ = false;
  cache_.reset();
  warned_ = false;
}

void Chat::save(const std::string& path) const {
  if (transcript_.tokens.empty()) throw UsageError("there is nothing to save: nothing has been said yet");
  if (!cache_) {
    throw UsageError(fmt::format(
        "there is no cache to save: the {} tokens so far are read again with your next line, so save after that",
        tokens()));
  }
  session_.save(path, *cache_, {}, transcript_);
}

void Chat::load(const std::string& path) {
  Restored restored = session_.load(path);
  cache_ = std::move(restored.cache);
  compressed_ = as_size(cache_->stats().tokens_seen);
  cache_options_ = cache_->options();
  transcript_ = std::move(restored.transcript);
  begins_with_cache_ = transcript_.conversation.last() == nullptr;
  turn_begin_.reset();
  warned_ = false;
}

int Chat::unread() const {
  const auto& [conversation, tokens] = transcript_;
  if (cache_) return static_cast<int>(tokens.size()) - cache_->stats().tokens_seen;
  return static_cast<int>(tokens.empty() ? session_.model().tokenize(conversation).size() : tokens.size());
}

std::optional<CacheStats> Chat::stats() const { return cache_ ? std::optional(cache_->stats()) : std::nullopt; }

}  // namespace winnow
