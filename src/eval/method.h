// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/ask.h"
#include "winnow/questions.h"
#include "winnow/session.h"

namespace winnow::eval {

/// What is measured on a sample: a cache of the whole prompt, or a way of asking over its documents (winnow/ask.h),
/// with budget and type. A value.
class Method {
 public:
  /// Both throw UsageError for options that do not go together.
  Method(CacheOptions cache);         // NOLINT(google-explicit-constructor): a cache is a method
  Method(const AskOptions& options);  // NOLINT(google-explicit-constructor): so is an ask

  /// How the cache is kept; of an ask, that of documents and question.
  const CacheOptions& cache() const { return cache_; }
  /// Nothing for a cache of the whole prompt.
  const std::optional<AskOptions>& ask() const { return ask_; }

  /// The spec in canonical form, by which records name the method.
  std::string spec() const { return ask_ ? ask_->method.print() : cache_.spec.print(); }
  const std::optional<Budget>& budget() const { return cache_.budget; }
  const KvType& kv_type() const { return cache_.kv_type; }

  bool operator==(const Method& other) const {
    return spec() == other.spec() && budget() == other.budget() && kv_type() == other.kv_type();
  }

 private:
  CacheOptions cache_;
  std::optional<AskOptions> ask_;
};

/// Whether a text begins as the spec of a method does, with its name.
bool is_method(std::string_view text);

/// All combinations of the methods in `lists` (each a spec, or several as Spec::parse_list() reads them, of caches and
/// of asks), KV types and, for methods that need one, budgets: each once, in this order. `auto` stands for the
/// methods that are recommended for the protocols. Throws UsageError: an unknown name names the nearest method and
/// lists all, a method lacks its budget.
std::vector<Method> methods_of(std::span<const std::string> lists, std::span<const std::string> budgets,
                               std::span<const std::string> kv_types, std::span<const Protocol> protocols);

}  // namespace winnow::eval
