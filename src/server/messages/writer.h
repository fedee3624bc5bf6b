// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "server/answers/surface_writer.h"
#include "server/openai/answer.h"

namespace winnow::server {

/// Sends an answer as a message of content blocks, at once or as a stream.
class MessageWriter : public OneAnswerWriter {
 public:
  using OneAnswerWriter::OneAnswerWriter;

  void delta(int choice, AnswerDelta delta, const AnswerCost& now) override;
  void finished(const AnswerCost& cost) override;

 private:
  enum class Block : std::uint8_t { thinking, text, call };

  void open_stream() override;
  void tell_going_on() override { tell({{"type", "ping"}}); }
  void tell_failure(const std::exception_ptr& error) override;
  HttpReply error_reply_for(const std::exception_ptr& error) const override;

  Json message(const AnswerCost& cost) const;
  /// Ends the open block, unless it is of this kind, and begins a new one.
  void open(Block kind, Json block);
  void close();
  void tell_delta(Json delta);
  void tell(const Json& event) { write(named_event(event)); }

  AnswerDelta whole_;           ///< unless it is streamed
  std::optional<Block> block_;  ///< the open block
  std::size_t blocks_ = 0;      ///< number of blocks begun
};

}  // namespace winnow::server
