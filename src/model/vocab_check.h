// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "model/gguf_header.h"

namespace winnow::model {

/// Checks the `tokenizer.` keys for everything that libllama relies on.
class VocabularyKeys {
 public:
  /// `value` must outlive the object. Throws ModelError if the key has another type than libllama expects.
  void add(const std::string& key, const Value& value, const std::string& path);
  /// Throws ModelError for no tokens, repeated tokens, lists of different lengths, missing special tokens, an unknown
  /// tokenizer, or scores that are not finite.
  void check(const std::string& path) const;

 private:
  const Value* find(const std::string& key) const;

  std::map<std::string, const Value*> values_;
};

}  // namespace winnow::model
