// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "server/answers/surface_writer.h"
#include "server/openai/answer.h"
#include "winnow/model.h"

namespace winnow::server {

/// Sends an answer as a response with output items. A stream sends the items as they are made, and ends with the
/// response.
class ResponseWriter : public OneAnswerWriter {
 public:
  ResponseWriter(std::shared_ptr<const Model> model, AnswerPlan plan, std::shared_ptr<Responder> to)
      : OneAnswerWriter(std::move(plan), std::move(to)), model_(std::move(model)) {}

  void delta(int choice, AnswerDelta delta, const AnswerCost& now) override;
  void finished(const AnswerCost& cost) override;

 private:
  enum class Item : std::uint8_t { reasoning, message, call };

  void open_stream() override;
  void tell_going_on() override;
  void tell_failure(const std::exception_ptr& error) override;

  Json response(const char* status) const;
  /// Sends an event of a stream; `fields` follow its type.
  void tell(const char* type, const Json& fields);
  /// Sends an event of the open item.
  void tell_of_item(const char* type, const Json& fields);
  void open(Item kind, Json item);
  void open_text(Item kind);
  void close(const char* status);
  void close_text();
  void add_text(const std::string& text, std::span<const GeneratedToken> tokens);
  void add_call(const CallDelta& call);
  Json& item() { return output_.back(); }
  Json& part() { return item()["content"][0]; }

  std::shared_ptr<const Model> model_;
  Json output_ = Json::array();
  std::optional<Item> open_;
  std::size_t events_ = 0;
};

}  // namespace winnow::server
