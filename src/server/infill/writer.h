// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/answers/surface_writer.h"
#include "server/openai/answer.h"

namespace winnow::server {

/// Sends one text in the format of llama.cpp's server, at once or as a stream.
class InfillWriter : public OneAnswerWriter {
 public:
  using OneAnswerWriter::OneAnswerWriter;

  void delta(int choice, AnswerDelta delta, const AnswerCost& now) override;
  void finished(const AnswerCost& cost) override;

 private:
  std::string text_;  ///< unless it is streamed
};

}  // namespace winnow::server
