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

/// A measured method: a cache of the whole prompt, or an ask method over the sample's documents (winnow/ask.h), with
/// budget and KV type. A value.
class Method {
 public:
  /// Both constructors throw UsageError for options that do not go together.
  Method(CacheOptions cache);         // NOLINT(google-explicit-constructor): a cache is a method
  Method(const AskOptions& options);  // NOLINT(google-explicit-constructor): so is an ask method

  /// Cache options; for an ask method, those of documents and question.
  const CacheOptions& cache() const { return cache_; }
  /// Empty for a cache of the whole prompt.
  const std::optional<AskOptions>& ask() const { return ask_; }

  /// The canonical spec, by which records name the method.
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

/// True if a text begins with the name of a method.
bool is_method(std::string_view text);

/// All combinations of methods, KV types and, for methods that need one, budgets: each once, in this order. An element
/// of `lists` is a spec, or several as Spec::parse_list() reads them; caches and ask methods may mix. `auto` stands for
/// the recommended methods of the protocols. Throws UsageError for an unknown name (naming the nearest and listing all)
/// and for a method without its budget.
std::vector<Method> methods_of(std::span<const std::string> lists, std::span<const std::string> budgets,
                               std::span<const std::string> kv_types, std::span<const Protocol> protocols);

}  // namespace winnow::eval
