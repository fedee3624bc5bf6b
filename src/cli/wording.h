// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "winnow/generate.h"
#include "winnow/session.h"

namespace winnow::cli {

/// Names for messages.
const char* name_of(PromptFormat format);

/// The spec as typed, the budget and the KV type.
std::string described(const CacheOptions& cache);
/// The same with all options of the spec, and the spec that `auto` stands for.
std::string described_in_full(const CacheOptions& cache);

/// A rate; 0 if no time has passed.
double per_second(double count, double ms);

/// "42 s", "12 min" or "3 h 20 min".
std::string duration(double seconds);

/// Reports on stderr if an answer was cut by -n.
void say_if_cut(const Generation& generation);

/// The expected next step of a conversation, by the role of its last message.
const char* where_it_ends(const Conversation& conversation);

}  // namespace winnow::cli
