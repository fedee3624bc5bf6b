// SPDX-License-Identifier: Apache-2.0
#include "model/vocab.h"

#include <llama.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "base/as_size.h"
#include "base/stop_scope.h"
#include "model/special_tokens.h"
#include "model/token_class.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

/// Bytes of the longest token text; the name in the case of control tokens.
std::size_t longest_text(const llama_vocab* vocab) {
  constexpr int kNoRoom = 0;  // then the required size is returned, negated
  int longest = 1;
  for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token)
    longest = std::max(longest, -llama_token_to_piece(vocab, token, nullptr, kNoRoom, 0, true));
  return as_size(longest);
}

constexpr int kControl = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN;  // have no text, only a name

/// The tokens with `wanted(attributes)` that libllama recognises by name, in libllama's order. All are sorted before
/// some are removed, since the order of equally long names depends on all.
template <class Wanted>
SpecialTokens tokens_with(const llama_vocab* vocab, const Wanted& wanted) {
  std::vector<SpecialToken> out;
  for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    const int attributes = llama_vocab_get_attr(vocab, token);
    if ((attributes & (kControl | LLAMA_TOKEN_ATTR_USER_DEFINED)) == 0) continue;
    out.push_back({token, llama_vocab_get_text(vocab, token), (attributes & LLAMA_TOKEN_ATTR_LSTRIP) != 0,
                   (attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name.size() > b.name.size(); });
  std::erase_if(out, [&](const auto& special) {
    return special.name.empty() || !wanted(llama_vocab_get_attr(vocab, special.token));
  });
  return SpecialTokens(std::move(out));
}

SpecialTokens control_tokens(const llama_vocab* vocab) {
  return tokens_with(vocab, [](int attributes) { return (attributes & kControl) != 0; });
}

SpecialTokens special_tokens(const llama_vocab* vocab, ControlTokens control) {
  return tokens_with(vocab,
                     [=](int attributes) { return control == ControlTokens::parsed || (attributes & kControl) == 0; });
}

/// Adds libllama's tokens of a text. Throws InputError.
void add_tokens(const llama_vocab* vocab, std::string_view text, ControlTokens control, std::vector<Token>& to) {
  constexpr bool kNothingAdded = false;
  const std::size_t before = to.size();
  const auto run = [&](std::size_t room) {
    to.resize(before + room);
    return llama_tokenize(vocab, text.data(), static_cast<int>(text.size()), to.data() + before, static_cast<int>(room),
                          kNothingAdded, control == ControlTokens::parsed);
  };
  try {
    int n = run(text.size() + 8);
    if (n < 0) n = run(as_size(-n));
    to.resize(before + as_size(n));
  } catch (const std::exception& error) {
    throw InputError(fmt::format("cannot tokenize {} bytes of text: {}", text.size(), error.what()));
  }
}

/// Counts bytes of text spelled by tokens. SentencePiece's space sign counts as one byte, even if it is spelled as
/// three byte tokens.
class SpelledBytes {
 public:
  /// Adds a token text and returns the bytes up to its end.
  std::size_t add(std::string_view text) {
    constexpr std::string_view kSpace = "\u2581";
    for (const char byte : text) {
      if (byte == kSpace[matched_]) {
        ++matched_;
      } else {
        count_ += matched_ + 1;
        matched_ = 0;
      }
      if (matched_ < kSpace.size()) continue;
      ++count_;
      matched_ = 0;
    }
    return count_;
  }

 private:
  std::size_t matched_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

}  // namespace winnow::model

namespace winnow {

Vocab::~Vocab() = default;

std::vector<Token> Vocab::opening(std::string_view text) const {
  std::vector<Token> out = beginning();
  const auto tokens = tokenize(text, ControlTokens::parsed);
  if (!tokens.empty() && out == std::vector<Token>{tokens.front()}) out.clear();
  out.insert(out.end(), tokens.begin(), tokens.end());
  return out;
}

}  // namespace winnow

namespace winnow::model {

void Vocab::Free::operator()(llama_model* model) const { llama_model_free(model); }

Vocab::Vocab(const ModelFile& file) : path_(file.path()) {
  auto params = llama_model_default_params();
  params.vocab_only = true;
  const auto no_tensors = [](ggml_tensor*, void*) {};
  model_.reset(llama_model_init_from_user(file.gguf(), no_tensors, nullptr, params));
  if (model_ == nullptr) throw ModelError(fmt::format("{}: libllama cannot read its vocabulary (-v shows why)", path_));
  vocab_ = llama_model_get_vocab(model_.get());
  longest_text_ = longest_text(vocab_);
  for (Token token = 0; token < llama_vocab_n_tokens(vocab_); ++token) {
    const std::string text = has_text(token) ? this->text(token) : std::string();
    classes_.push_back(model::class_of(text));
    first_bytes_.push_back(text.empty() ? std::nullopt : std::optional(static_cast<unsigned char>(text.front())));
  }
}

std::vector<Token> Vocab::tokenize(std::string_view text, ControlTokens control) const {
  constexpr std::size_t kMost = std::numeric_limits<int>::max() - 8;
  constexpr std::size_t kShort = 4096;  // short enough for libllama to split by itself
  if (text.size() > kMost)
    throw InputError(
        fmt::format("a text of {} bytes is too long: at most {} bytes can be tokenized", text.size(), kMost));
  std::vector<Token> out;
  if (text.size() <= kShort) {
    add_tokens(vocab_, text, control, out);
    return out;
  }
  for (const auto& segment : special_tokens(vocab_, control).split(text)) {
    StopScope::check();
    if (segment.token >= 0) {
      out.push_back(segment.token);
    } else {
      add_tokens(vocab_, segment.text, ControlTokens::as_text, out);
    }
  }
  return out;
}

std::vector<Token> Vocab::tokenize(const MarkedText& text, std::span<std::size_t> places) const {
  const std::string masked = control_tokens(vocab_).masked(text);
  std::vector<Token> out;
  for (const auto& segment : special_tokens(vocab_, ControlTokens::parsed).split(masked)) {
    StopScope::check();
    const auto begin = static_cast<std::size_t>(segment.text.data() - masked.data());
    const std::size_t end = begin + segment.text.size();
    const std::size_t before = out.size();
    const auto here = std::ranges::find_if(places, [=](std::size_t place) { return place >= end; });
    const std::span within(places.begin(), here);
    if (segment.token >= 0) {
      out.push_back(segment.token);
      std::ranges::fill(within, before);
    } else {
      add_tokens(vocab_, std::string_view(text.text).substr(begin, segment.text.size()), ControlTokens::as_text, out);
      find_tokens(std::span(out).subspan(before), {begin, end}, before, within);
    }
    places = {here, places.end()};
  }
  std::ranges::fill(places, out.size());
  return out;
}

void Vocab::find_tokens(std::span<const Token> tokens, MarkedText::Stretch of, std::size_t before,
                        std::span<std::size_t> places) const {
  if (places.empty()) return;
  std::vector<std::size_t> ends;  // ends of tokens in bytes of the text; the first token may have SentencePiece's
                                  // additional first space
  SpelledBytes spelled;
  for (const Token token : tokens) ends.push_back(spelled.add(this->text(token)));
  const std::size_t length = of.end - of.begin;
  const std::size_t added = ends.empty() ? 0 : std::max(ends.back(), length) - length;
  auto place = places.begin();
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (; place != places.end() && (*place == of.begin || *place - of.begin + added < ends[i]); ++place)
      *place = before + i;
  }
  std::fill(place, places.end(), before + tokens.size());
}

std::vector<Token> Vocab::beginning() const {
  if (!llama_vocab_get_add_bos(vocab_) || beginning_of_text() < 0) return {};
  return {beginning_of_text()};
}

std::vector<Token> Vocab::ending() const {
  if (!llama_vocab_get_add_eos(vocab_) || end_of_text() < 0) return {};
  return {end_of_text()};
}

InfillTokens Vocab::infill_tokens() const {
  return {llama_vocab_fim_pre(vocab_), llama_vocab_fim_suf(vocab_), llama_vocab_fim_mid(vocab_),
          llama_vocab_fim_sep(vocab_), llama_vocab_fim_rep(vocab_)};
}

std::string Vocab::spelled(Token token, ControlNames control) const {
  std::string out(64, '\0');
  const auto run = [&] {
    return llama_token_to_piece(vocab_, token, out.data(), static_cast<int>(out.size()), 0,
                                control == ControlNames::spelled);
  };
  int n = run();
  if (n < 0) {
    out.resize(-n);
    n = run();
  }
  out.resize(n);
  return out;
}

std::size_t Vocab::least_tokens(std::size_t bytes) const { return (bytes + longest_text_ - 1) / longest_text_; }

bool Vocab::ends(Token token) const { return llama_vocab_is_eog(vocab_, token); }
bool Vocab::has_text(Token token) const {
  return (llama_vocab_get_attr(vocab_, token) & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) == 0;
}

TokenClass Vocab::class_of(Token token) const {
  return as_size(token) < classes_.size() ? classes_[as_size(token)] : TokenClass{};
}

std::optional<unsigned char> Vocab::first_byte(Token token) const {
  return as_size(token) < first_bytes_.size() ? first_bytes_[as_size(token)] : std::nullopt;
}

Token Vocab::beginning_of_text() const { return llama_vocab_bos(vocab_); }
Token Vocab::end_of_text() const { return llama_vocab_eos(vocab_); }

namespace {

std::string template_of(const llama_model* model, const char* kind) {
  const char* const text = llama_model_chat_template(model, kind);
  return text == nullptr ? "" : text;
}

}  // namespace

std::string Vocab::chat_template() const { return template_of(model_.get(), nullptr); }
std::string Vocab::tool_use_template() const { return template_of(model_.get(), "tool_use"); }

}  // namespace winnow::model
