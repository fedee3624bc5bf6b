// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "model/gguf_header.h"

namespace winnow::model {

/// Checks the `tokenizer.` keys for everything that libllama's vocabulary relies on.
class VocabularyKeys {
 public:
  /// Throws ModelError when the key has another type than libllama reads.
  /// `value` must outlive the object.
  void add(const std::string& key, const Value& value, const std::string& path);
  /// Throws ModelError: no tokens, repeated tokens, lists of different lengths, special tokens that are not there, an
  /// unknown tokenizer, scores that are no numbers.
  void check(const std::string& path) const;

 private:
  const Value* find(const std::string& key) const;

  std::map<std::string, const Value*> values_;
};

}  // namespace winnow::model
