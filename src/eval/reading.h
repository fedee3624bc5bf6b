// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "eval/method.h"
#include "eval/tokenized_sample.h"

namespace winnow::eval {

/// A method's cache of a prompt, ready to answer.
struct Reading {
  Cache cache;
  std::vector<float> logits;  ///< [n_vocab] after the question
  CacheStats stats;           ///< when the cache had been compressed
  FirstToken first_token = FirstToken::full_attention;
  /// For an ask method: "ttft_ms" (from the question to the first token, with the documents already read),
  /// "sequence_ratio" and "recompute_ratio" (shares of all entries that are kept and recomputed).
  std::map<std::string, double> values = {};
};

/// Reads a sample with all methods, and returns the results in their order. The prompt is read once for all caches, and
/// the documents once for all ask methods of a KV type. REQUIRES: documents if there is an ask method. Throws what
/// Session::prefill(), documents::ingest() and ask() throw.
std::vector<Reading> read(Session& session, const TokenizedSample& sample, std::span<const Method> methods);

}  // namespace winnow::eval
