// SPDX-License-Identifier: Apache-2.0
#include "model/special_tokens.h"

#include <algorithm>
#include <cctype>

#include "base/stop_scope.h"

namespace winnow::model {

namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::size_t before_space(std::string_view text, std::size_t least, std::size_t at) {
  while (at > least && is_space(text[at - 1])) --at;
  return at;
}

std::size_t after_space(std::string_view text, std::size_t at, std::size_t most) {
  while (at < most && is_space(text[at])) ++at;
  return at;
}

}  // namespace

SpecialTokens::SpecialTokens(std::vector<SpecialToken> tokens) : tokens_(std::move(tokens)), nodes_(1) {
  some_take_space_before_ = std::ranges::any_of(tokens_, &SpecialToken::takes_space_before);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    int node = 0;
    for (const char c : tokens_[i].name) {
      const auto [next, is_new] = nodes_[node].next.emplace(c, static_cast<int>(nodes_.size()));
      node = next->second;
      if (is_new) nodes_.emplace_back();
    }
    if (nodes_[node].token == kNone) nodes_[node].token = static_cast<int>(i);
  }
}

template <class Found>
void SpecialTokens::find_all(std::string_view text, const Found& found) const {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const Node* node = nodes_.data();
    for (std::size_t i = at; i < text.size(); ++i) {
      const auto next = node->next.find(text[i]);
      if (next == node->next.end()) break;
      node = &nodes_[next->second];
      if (node->token != kNone) found(static_cast<std::size_t>(node->token), at);
    }
  }
}

std::vector<TextSegment> SpecialTokens::split(std::string_view text) const {
  std::vector<Range> ranges;
  Cluster cluster;
  find_all(text, [&](std::size_t token, std::size_t at) { add(cluster, token, text, at, ranges); });
  resolve(cluster, text, ranges);
  std::vector<TextSegment> out;
  std::size_t begin = 0;  // of the text that no token has consumed
  const auto add_text = [&](std::size_t end) {
    if (end > begin) out.push_back({.text = text.substr(begin, end - begin)});
  };
  for (const auto& [token, from, to] : ranges) {
    add_text(from);
    out.push_back({.token = token->token, .text = text.substr(from, to - from)});
    begin = to;
  }
  add_text(text.size());
  return out;
}

std::string SpecialTokens::masked(const MarkedText& text) const {
  std::string out = text.text;
  auto stretch = text.input.begin();
  find_all(text.text, [&](std::size_t token, std::size_t at) {
    while (stretch != text.input.end() && stretch->end <= at) ++stretch;
    if (stretch != text.input.end() && stretch->begin < at + tokens_[token].name.size())
      out[std::max(at, stretch->begin)] = '\0';
  });
  return out;
}

void SpecialTokens::add(Cluster& cluster, std::size_t token, std::string_view text, std::size_t at,
                        std::vector<Range>& to) const {
  const SpecialToken& found = tokens_[token];
  const std::size_t begin = some_take_space_before_ ? before_space(text, cluster.end, at) : at;
  const std::size_t end = at + found.name.size();
  if (begin > cluster.end || (begin == cluster.end && !some_take_space_before_)) {
    resolve(cluster, text, to);
    cluster = {begin, end};
  }
  cluster.end = std::max(cluster.end, found.takes_space_after ? after_space(text, end, text.size()) : end);
  cluster.tokens.insert(token);
}

void SpecialTokens::resolve(const Cluster& cluster, std::string_view text, std::vector<Range>& to) const {
  StopScope::check();
  std::vector<Range> ranges{{nullptr, cluster.begin, cluster.end}};
  for (const std::size_t token : cluster.tokens) ranges = split_at(tokens_[token], text, ranges);
  std::ranges::copy_if(ranges, std::back_inserter(to), [](const Range& range) { return range.token != nullptr; });
}

std::vector<SpecialTokens::Range> SpecialTokens::split_at(const SpecialToken& token, std::string_view text,
                                                          std::span<const Range> ranges) {
  std::vector<Range> out;
  for (const auto& range : ranges) {
    std::size_t begin = range.begin;
    const std::string_view whole = text.substr(0, range.end);
    auto at = range.token == nullptr ? whole.find(token.name, begin) : std::string_view::npos;
    for (; at != std::string_view::npos; at = whole.find(token.name, begin)) {
      const std::size_t from = token.takes_space_before ? before_space(text, begin, at) : at;
      if (from > begin) out.push_back({nullptr, begin, from});
      const std::size_t end = at + token.name.size();
      begin = token.takes_space_after ? after_space(text, end, range.end) : end;
      out.push_back({&token, from, begin});
    }
    if (begin < range.end || range.token != nullptr) out.push_back({range.token, begin, range.end});
  }
  return out;
}

}  // namespace winnow::model
