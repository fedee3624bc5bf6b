// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "server/answers/events.h"
#include "server/answers/plan.h"
#include "server/http/message.h"

namespace winnow::server {

/// Common part of all writers: sends an answer at once or as a stream, and errors in the API's format, by default
/// OpenAI's.
class SurfaceWriter : public AnswerWriter {
 public:
  SurfaceWriter(AnswerPlan plan, std::shared_ptr<Responder> to) : plan_(std::move(plan)), to_(std::move(to)) {}

  void refused(const std::exception_ptr& why) final { to_->send(error_reply_for(why)); }
  void begun() final;
  void goes_on() final;
  void failed(const std::exception_ptr& error) final;

 protected:
  const AnswerPlan& plan() const { return plan_; }
  bool is_streamed() const { return plan_.form.stream; }
  void send(std::string whole) { to_->send({.body = std::move(whole)}); }
  void write(std::string event) { to_->write(std::move(event)); }
  void end_stream() { to_->end(); }

  /// Sends the first events of a stream.
  virtual void open_stream() {}
  /// Sends a keep-alive in a stream.
  virtual void tell_going_on() { write(": \n\n"); }
  /// Sends the error that ends a stream.
  virtual void tell_failure(const std::exception_ptr& error);
  virtual HttpReply error_reply_for(const std::exception_ptr& error) const;

 private:
  AnswerPlan plan_;
  std::shared_ptr<Responder> to_;
};

/// A writer of one answer, which stores its end.
class OneAnswerWriter : public SurfaceWriter {
 public:
  using SurfaceWriter::SurfaceWriter;
  void ended(int /*choice*/, const AnswerEnd& end, const AnswerCost& /*now*/) final { end_ = end; }

 protected:
  const AnswerEnd& end() const { return end_; }

 private:
  AnswerEnd end_;
};

}  // namespace winnow::server
