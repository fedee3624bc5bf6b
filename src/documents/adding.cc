// SPDX-License-Identifier: Apache-2.0
#include "documents/adding.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/as_size.h"
#include "base/clock.h"
#include "engine/model_impl.h"
#include "winnow/error.h"

namespace winnow::documents {

namespace {

Label label_of(const NewDocument& document) {
  Label out{document.name, document.tags};
  out.check();
  return out;
}

/// The document's text for reading. Errors name the document.
DocumentText text_of(const Model& model, const NewDocument& document) {
  DocumentText text = document.text;
  if (text.text.empty() && text.tokens.empty())
    throw InputError(fmt::format("the document {} is empty: there is nothing to read", document.name));
  const auto context = as_size(model.info().context);
  if (const auto least = model.vocab().least_tokens(text.text.size()); least > context)
    throw InputError(
        fmt::format("the document {} has {} bytes and so at least {} tokens, more than the model's context of {}",
                    document.name, text.text.size(), least, context));
  auto& tokens = text.tokens;
  if (tokens.empty()) tokens = model.tokenize(Conversation{text.text, {}, PromptFormat::raw, text.control});
  if (tokens.size() > context)
    throw InputError(fmt::format("the document {} has {} tokens, more than the model's context of {}", document.name,
                                 tokens.size(), context));
  return text;
}

}  // namespace

Adding::Adding(const Model& model, const NewDocument& document, const CacheOptions& options)
    : label_(label_of(document)),
      reading_(model, text_of(model, document), options),
      id_(content_id(engine::identity_of(model), options, reading_.tokens())) {}

bool Adding::add_known(Archive& archive) {
  const auto begin = Clock::now();
  if (!archive.name(label_, id_, added_.outcome)) return false;
  finish(archive, ms_since(begin));
  return true;
}

void Adding::begin(Session::Impl& session) {
  begun_ = Clock::now();
  reading_.begin(session);
}

bool Adding::advance() {
  if (reading_.advance()) return true;
  read_ = reading_.take();
  added_.was_read = true;
  added_.read_ms = ms_since(begun_);
  return false;
}

void Adding::keep(Archive& archive) {
  const auto begin = Clock::now();
  added_.outcome = archive.put(label_, read_->head, engine::sequence_of(read_->cache));
  finish(archive, ms_since(begin));
}

void Adding::finish(const Archive& archive, double store_ms) {
  added_.store_ms = store_ms;
  added_.info = archive.info(label_.name);
}

}  // namespace winnow::documents
