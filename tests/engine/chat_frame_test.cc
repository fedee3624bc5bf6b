// SPDX-License-Identifier: Apache-2.0
// No message is lost without a word, whatever libllama's chat templates do with it.
#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/model_impl.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow {
namespace {

std::vector<std::string> templates() {
  std::vector<const char*> names(200);
  names.resize(static_cast<std::size_t>(llama_chat_builtin_templates(names.data(), names.size())));
  return {names.begin(), names.end()};
}

class ChatFrame : public testing::Test {
 public:
  std::shared_ptr<const Model> model_of(const std::string& chat_template) {
    test::TinyModel tiny;
    tiny.chat_template = chat_template;
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    return Model::load(folder_ / "tiny.gguf");
  }

 private:
  test::TempFolder folder_;
};

TEST_F(ChatFrame, each_system_message_is_there_or_refused) {
  using enum Role;
  const std::vector<std::vector<Role>> conversations{
      {system, user},
      {user, system},
      {system, system, user},
      {system, user, assistant, system, user},
      {user, assistant, user, system},
      {user, system, assistant, user},
      {system, user, system, user, system},
  };
  int there = 0;
  int refused = 0;
  for (const auto& name : templates()) {
    const auto model = model_of(name);
    for (const auto& roles : conversations) {
      std::vector<Message> messages;
      for (const auto role : roles)
        messages.push_back(
            {role, role == system ? "Rule " + std::to_string(messages.size()) + " of this test." : "words"});
      std::string text;
      try {
        for (const auto& part : model->impl().vocab.chat_frame(messages)) text += part;
      } catch (const UsageError&) {
        ++refused;
        continue;
      }
      ++there;
      for (const auto& message : messages) {
        if (message.role == system) {
          EXPECT_NE(text.find(message.content), std::string::npos) << name << ": " << text;
        }
      }
    }
  }
  EXPECT_GT(there, 100);
  EXPECT_GT(refused, 0);
}

TEST_F(ChatFrame, a_zero_byte_in_a_system_message_is_refused_with_its_place) {
  const auto model = model_of("chatml");
  const std::vector<Message> messages{{Role::user, "a"}, {Role::system, std::string("Alpha\0 Omega", 12)}};
  try {
    model->impl().vocab.chat_frame(messages);
    FAIL() << "nothing was refused";
  } catch (const model::LostMessageError& error) {
    EXPECT_STREQ(error.what(), "message 2 is the system's, and byte 6 of its 12 is zero, where it would be cut");
  }
}

TEST_F(ChatFrame, zero_bytes_of_others_are_read) {
  const auto model = model_of("chatml");
  const std::string zero("a\0b", 3);
  const auto tokens =
      model->tokenize(Conversation{"", {{Role::user, zero}}, PromptFormat::chat, ControlTokens::as_text});
  std::string text;
  for (const Token token : tokens) text += model->piece(token);
  EXPECT_NE(text.find(zero), std::string::npos);
}

}  // namespace
}  // namespace winnow
