// SPDX-License-Identifier: Apache-2.0
#include "server/request_log.h"

#include <spdlog/async.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdint>

#include "base/clock.h"
#include "base/printable.h"
#include "base/start_thread.h"
#include "server/openai/answer.h"

namespace winnow::server {

namespace {

constexpr std::size_t kMostLines = 8192;  ///< most lines that may wait for a slow reader

Json rounded_ms(double ms) { return static_cast<double>(static_cast<std::int64_t>(ms * 1000)) / 1000; }

std::string json_line(const RequestRecord& record) {
  const AnswerCost& cost = record.cost;
  return text_of({{"time", static_cast<double>(ms_since_1970()) / 1000},
                  {"path", text_or_null(record.path)},
                  {"id", text_or_null(record.id)},
                  {"key", text_or_null(record.key)},
                  {"status", record.status},
                  {"finish", text_or_null(record.finish)},
                  {"reason", text_or_null(record.reason)},
                  {"message", text_or_null(record.message)},
                  {"prompt_tokens", cost.prompt_tokens},
                  {"cached_tokens", cost.cached_tokens},
                  {"completion_tokens", cost.answer_tokens},
                  {"spec", text_or_null(cost.spec)},
                  {"budget", text_or_null(cost.budget)},
                  {"bytes_held", cost.bytes_held},
                  {"queue_ms", rounded_ms(cost.queue_ms)},
                  {"read_ms", rounded_ms(cost.read_ms)},
                  {"answer_ms", rounded_ms(cost.answer_ms)}});
}

std::string text_line(const RequestRecord& record) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : brief(text); };
  std::string out = fmt::format("{} {} key={} status={}", or_dash(record.path), or_dash(record.id), or_dash(record.key),
                                record.status);
  if (!record.finish.empty()) out += fmt::format(" finish={}", record.finish);
  if (!record.reason.empty()) out += fmt::format(" reason={}", record.reason);
  const AnswerCost& cost = record.cost;
  if (!cost.spec.empty()) {
    out += fmt::format(" prompt={} cached={} generated={} spec={} budget={} held={}", cost.prompt_tokens,
                       cost.cached_tokens, cost.answer_tokens, cost.spec, or_dash(cost.budget), cost.bytes_held);
    out += fmt::format(" queue_ms={:.1f} read_ms={:.1f} answer_ms={:.1f}", cost.queue_ms, cost.read_ms, cost.answer_ms);
  }
  return record.message.empty() ? out : fmt::format("{}: {}", out, printable(record.message));
}

}  // namespace

struct RequestLog::Impl {
  explicit Impl(RequestLogging f) : format(f) {
    thread = start_thread("the log", [] { return std::make_shared<spdlog::details::thread_pool>(kMostLines, 1); });
    logger = std::make_shared<spdlog::async_logger>("requests", std::make_shared<spdlog::sinks::stderr_sink_mt>(),
                                                    thread, spdlog::async_overflow_policy::overrun_oldest);
    logger->set_pattern(format == RequestLogging::json ? "%v" : "%Y-%m-%dT%H:%M:%S.%e%z %v");
  }

  RequestLogging format;
  std::shared_ptr<spdlog::async_logger> logger;
  std::shared_ptr<spdlog::details::thread_pool> thread;  ///< destroyed first, since it uses the logger
};

RequestLog::RequestLog(RequestLogging format)
    : impl_(format == RequestLogging::none ? nullptr : std::make_unique<Impl>(format)) {}

RequestLog::~RequestLog() = default;

void RequestLog::write(const RequestRecord& record) {
  if (impl_) impl_->logger->info(impl_->format == RequestLogging::json ? json_line(record) : text_line(record));
}

}  // namespace winnow::server
