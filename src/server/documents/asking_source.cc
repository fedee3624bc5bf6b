// SPDX-License-Identifier: Apache-2.0
#include "server/documents/asking_source.h"

#include <utility>

#include "server/openai/errors.h"
#include "winnow/store_error.h"

namespace winnow::server {

bool AskingSource::advance() {
  try {
    return asking_.advance();
  } catch (const documents::UnreadableError& error) {
    const std::string sentence = place_.without(error.what());
    try {
      std::rethrow_exception(error.cause());
    } catch (const StoreError&) {
      throw StoreError(sentence);
    } catch (const Error&) {
      throw ApiError(409, sentence, "winnow.documents", "document_unreadable");
    }
  }
}

Cache AskingSource::take_cache() {
  Asked asked = asking_.take();
  logits_ = std::move(asked.logits);
  return std::move(asked.cache);
}

}  // namespace winnow::server
