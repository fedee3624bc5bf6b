// SPDX-License-Identifier: Apache-2.0
#include "hub/endpoint.h"

#include <common.h>
#include <download.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string_view>

#include "hub/cache.h"
#include "winnow/error.h"

namespace winnow::hub {

namespace {

constexpr long kOk = 200;
constexpr long kUnauthorized = 401;
constexpr long kForbidden = 403;
constexpr long kNotFound = 404;
constexpr long kPatience = 20;                  // seconds
constexpr long kLargestAnswer = 16L << 20U;     // bytes
constexpr std::uintmax_t kSmallestFile = 4096;  // bytes that a file list takes on most file systems

/// Removes the final slash and the credentials of an address.
std::string without_password(std::string address) {
  address.pop_back();
  const auto scheme = address.find("://");
  const auto begin = scheme == std::string::npos ? 0 : scheme + 3;
  const auto at = address.find('@', begin);
  if (at != std::string::npos && at < address.find('/', begin)) address.erase(begin, at + 1 - begin);
  return address;
}

/// True if llama.cpp sends this token when it requests a list.
bool is_sent(std::string_view token) {
  constexpr std::string_view kBegin = "hf_";
  return token.size() >= 37 && token.size() <= 256 && token.starts_with(kBegin) &&
         std::ranges::all_of(token.substr(kBegin.size()),
                             [](unsigned char c) { return c < 0x80 && std::isalnum(c) != 0; });
}

/// Hubs answer alike for missing and for private repositories.
std::string refused_without_token(const std::string& repository) {
  return fmt::format(
      "{} does not give access to {}: it does not exist, or it is private or gated and needs a token in HF_TOKEN",
      endpoint(), repository);
}

}  // namespace

std::string endpoint() {
  auto out = without_password(common_get_model_endpoint());
  if (!out.starts_with("http://") && !out.starts_with("https://"))
    throw UsageError(fmt::format(
        "the hub's address '{}' (MODEL_ENDPOINT or HF_ENDPOINT) does not begin with https:// or http://", out));
  return out;
}

std::string token() {
  const char* const value = std::getenv("HF_TOKEN");
  return value == nullptr ? "" : value;
}

std::string refusal(const std::string& repository, long status) {
  const bool has_token = !token().empty();
  switch (status) {
    case kUnauthorized:
      if (!has_token) return refused_without_token(repository);
      return fmt::format("{} rejects the token in HF_TOKEN for {}: check that it is complete (hf_…) and still valid",
                         endpoint(), repository);
    case kForbidden:
      if (!has_token) return refused_without_token(repository);
      return fmt::format("{} does not let the owner of the token in HF_TOKEN read {}: request access at {}/{}",
                         endpoint(), repository, endpoint(), repository);
    case kNotFound:
      return fmt::format("there is no repository {} at {}{}", repository, endpoint(),
                         has_token ? ", or the token in HF_TOKEN may not see it" : "");
    default:
      return fmt::format("{} answered the request for {} with status {}: try again later", endpoint(), repository,
                         status);
  }
}

std::string why_not_listed(const std::string& repository) {
  common_remote_params asking;
  asking.timeout = kPatience;
  asking.max_size = kLargestAnswer;
  if (is_sent(token())) asking.headers.emplace_back("Authorization", "Bearer " + token());
  long status = 0;
  try {
    status =
        common_remote_get_content(common_get_model_endpoint() + "api/models/" + repository + "/refs", asking).first;
  } catch (const std::exception&) {
    return fmt::format("cannot reach {} over the network", endpoint());
  }
  if (status != kOk) return refusal(repository, status);
  const auto folder = folder_of(repository);
  if (access(folder.c_str(), W_OK) != 0) return fmt::format("cannot write to {}", folder);
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (!error && space.available < kSmallestFile) return fmt::format("the disk of {} is full", folder);
  return fmt::format("{} sent no readable list of the files of {}", endpoint(), repository);
}

}  // namespace winnow::hub
