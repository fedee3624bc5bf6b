// SPDX-License-Identifier: Apache-2.0
#include "chat/bounds.h"

#include <jinja/limits.h>
#include <spdlog/fmt/fmt.h>

#include <string_view>

#include "chat/template.h"

namespace winnow::chat {

namespace {

// Several times what any of llama.cpp's own templates takes for 60 tools and a conversation of 1 MB.
constexpr std::size_t kSteps = 10'000'000;
constexpr std::size_t kBytes = std::size_t{512} << 20;
constexpr std::size_t kBytesForByte = 512;
constexpr std::size_t kDepth = 1000;
constexpr int kMostNested = 200;  // JSON

/// Says which bound it was.
std::string excess(std::string_view what, std::size_t bytes) {
  if (what == "steps") return fmt::format("takes more than {} steps", kSteps);
  if (what == "bytes") return fmt::format("makes texts and values of more than {} bytes together", bytes);
  return fmt::format("nests more than {} deep", kDepth);
}

}  // namespace

void bounded(const std::string& name, const char* done, std::size_t input, const std::function<void()>& run) {
  const std::size_t bytes = kBytes + kBytesForByte * input;
  jinja::limits limits(kSteps, bytes, kDepth);
  const jinja::limits_scope scope(limits);
  try {
    run();
  } catch (const jinja::limit_exceeded& limit) {
    throw TemplateError(fmt::format("{}: the chat template {}", name, excess(limit.what, bytes)));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw TemplateError(fmt::format("{}: the chat template cannot be {}: {}", name, done, error.what()));
  }
}

void check_json_nesting(const std::string& name, const std::string& text) {
  int nested = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') ++nested;
    if (c == ']' || c == '}') --nested;
    if (nested > kMostNested) throw TemplateError(fmt::format("{} nests more than {} deep", name, kMostNested));
  }
}

}  // namespace winnow::chat
