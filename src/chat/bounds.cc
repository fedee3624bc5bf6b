// SPDX-License-Identifier: Apache-2.0
#include "chat/bounds.h"

#include <jinja/limits.h>
#include <spdlog/fmt/fmt.h>

#include <string_view>
#include <vector>

#include "chat/template.h"

namespace winnow::chat {

namespace {

// Several times what any of llama.cpp's own templates needs for 60 tools and a conversation of 1 MB. Some of them loop
// over all messages for each message, and one copies its output with each message.
constexpr std::size_t kSteps = 4'000'000;
constexpr std::size_t kStepsForByte = 32;
constexpr std::size_t kBytes = std::size_t{1} << 30;
constexpr std::size_t kBytesForByte = 8'192;
constexpr std::size_t kHeld = std::size_t{256} << 20;
constexpr std::size_t kHeldForByte = 256;
constexpr std::size_t kDepth = 1000;
constexpr std::size_t kMostJsonNested = 200;
constexpr std::size_t kMostJsonMembers = 5000;  // per object

jinja::limits limits_for(std::size_t input) {
  return {kSteps + kStepsForByte * input, kBytes + kBytesForByte * input, kHeld + kHeldForByte * input, kDepth};
}

/// The limit that was exceeded, as a phrase.
std::string excess(std::string_view what, std::size_t input) {
  const auto most = limits_for(input);
  if (what == "steps") return fmt::format("takes more than {} steps", most.steps);
  if (what == "bytes") return fmt::format("copies more than {} bytes", most.bytes);
  if (what == "held") return fmt::format("creates more than {} bytes of text and values", most.held);
  return fmt::format("is nested more than {} levels deep", most.depth);
}

}  // namespace

void bounded(const std::string& subject, const char* task, std::size_t input, const std::function<void()>& run) {
  auto limits = limits_for(input);
  const jinja::limits_scope scope(limits);
  try {
    run();
  } catch (const jinja::limit_exceeded& limit) {
    throw TemplateError(fmt::format("{} {}", subject, excess(limit.what, input)));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw TemplateError(fmt::format("{} cannot {}: {}", subject, task, error.what()));
  }
}

void check_json(const std::string& name, const std::string& text) {
  std::vector<std::size_t> members;  // of the open lists and objects
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') members.push_back(0);
    if (members.size() > kMostJsonNested)
      throw TemplateError(fmt::format("{} is nested more than {} levels deep", name, kMostJsonNested));
    if (members.empty()) continue;
    if (c == ']' || c == '}') members.pop_back();
    if (c == ':' && ++members.back() > kMostJsonMembers)
      throw TemplateError(fmt::format("{} has an object of more than {} members", name, kMostJsonMembers));
  }
}

}  // namespace winnow::chat
