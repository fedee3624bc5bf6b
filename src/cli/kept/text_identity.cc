// SPDX-License-Identifier: Apache-2.0
#include "cli/kept/text_identity.h"

#include <spdlog/fmt/fmt.h>

#include <span>

#include "base/hash.h"

namespace winnow::cli {

TextIdentity identity_of_text(const Model& model, Conversation conversation) {
  if (conversation.text.empty()) return {};
  std::erase_if(conversation.messages, [](const Message& message) { return message.role != Role::system; });
  const auto tokens = model.tokenize(conversation);
  return {tokens.size(), fmt::format("{:016x}", hash_of(std::as_bytes(std::span(tokens))))};
}

}  // namespace winnow::cli
