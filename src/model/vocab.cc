#include "model/vocab.h"

#include <llama.h>
#include <spdlog/fmt/fmt.h>

#include <exception>

#include "model/backend_log.h"
#include "winnow/error.h"

namespace winnow::model {

void Vocab::Free::operator()(llama_model* model) const { llama_model_free(model); }

Vocab::Vocab(const std::string& path) : path_(path) {
  forward_backend_log();
  auto params = llama_model_default_params();
  params.vocab_only = true;
  model_.reset(llama_model_load_from_file(path.c_str(), params));
  if (model_ == nullptr) throw ModelError(fmt::format("{}: libllama cannot read its vocabulary (-v shows why)", path));
  vocab_ = llama_model_get_vocab(model_.get());
}

std::vector<Token> Vocab::tokenize(std::string_view text, ControlTokens control) const {
  std::vector<Token> out(text.size() + 8);
  const auto run = [&] {
    return llama_tokenize(vocab_, text.data(), static_cast<int>(text.size()), out.data(), static_cast<int>(out.size()), false,
                          control == ControlTokens::parsed);
  };
  try {
    int n = run();
    if (n < 0) {
      out.resize(static_cast<std::size_t>(-n));
      n = run();
    }
    out.resize(static_cast<std::size_t>(n));
  } catch (const std::exception& error) {
    throw InputError(fmt::format("{}: cannot tokenize {} bytes of text: {}", path_, text.size(), error.what()));
  }
  return out;
}

std::vector<Token> Vocab::beginning() const {
  if (!llama_vocab_get_add_bos(vocab_) || llama_vocab_bos(vocab_) < 0) return {};
  return {llama_vocab_bos(vocab_)};
}

std::string Vocab::piece(Token token) const {
  std::string out(64, '\0');
  const auto run = [&] { return llama_token_to_piece(vocab_, token, out.data(), static_cast<int>(out.size()), 0, false); };
  int n = run();
  if (n < 0) {
    out.resize(static_cast<std::size_t>(-n));
    n = run();
  }
  out.resize(static_cast<std::size_t>(n));
  return out;
}

bool Vocab::ends(Token token) const { return llama_vocab_is_eog(vocab_, token); }

std::string Vocab::render(const std::string& system, const std::vector<Message>& messages) const {
  const char* const name = llama_model_chat_template(model_.get(), nullptr);
  if (name == nullptr) throw UsageError(fmt::format("{}: the model has no chat template: use --raw", path_));
  std::vector<llama_chat_message> all;
  if (!system.empty()) all.push_back({"system", system.c_str()});
  for (const auto& message : messages) all.push_back({message.role, message.content.c_str()});
  std::string out(4096 + 2 * system.size(), '\0');
  const auto apply = [&] {
    return llama_chat_apply_template(name, all.data(), all.size(), true, out.data(), static_cast<int>(out.size()));
  };
  int n = apply();
  if (n > static_cast<int>(out.size())) {
    out.resize(static_cast<std::size_t>(n));
    n = apply();
  }
  if (n < 0) throw UsageError(fmt::format("{}: libllama does not know the model's chat template: use --raw", path_));
  out.resize(static_cast<std::size_t>(n));
  return out;
}

namespace {

// No template treats these contents specially, and they cannot be part of one.
constexpr std::string_view kFirst = "\x01winnow\x01";
constexpr std::string_view kSecond = "\x02winnow\x02";

}  // namespace

Vocab::Frame Vocab::chat_frame(const std::string& system) const {
  const std::string text = render(system, {{"user", std::string(kFirst)}});
  const auto at = text.find(kFirst);
  if (at == std::string::npos) throw UsageError(fmt::format("{}: libllama does not know the model's chat template: use --raw", path_));
  return {text.substr(0, at), text.substr(at + kFirst.size())};
}

Vocab::Frame Vocab::next_frame(const std::string& system) const {
  const std::string text = render(system, {{"user", "-"}, {"assistant", std::string(kFirst)}, {"user", std::string(kSecond)}});
  const auto answer = text.find(kFirst);
  const auto question = text.find(kSecond);
  if (answer == std::string::npos || question == std::string::npos || answer > question) {
    throw UsageError(fmt::format("{}: the model's chat template does not allow a second question: use --raw", path_));
  }
  const auto before = answer + kFirst.size();
  return {text.substr(before, question - before), text.substr(question + kSecond.size())};
}

}  // namespace winnow::model
