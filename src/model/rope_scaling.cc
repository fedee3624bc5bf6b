// SPDX-License-Identifier: Apache-2.0
#include "model/rope_scaling.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>

#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

constexpr double kLargestFactor = 1e6;

/// Takes a number from the beginning of `text`; empty if there is none in [least, most].
std::optional<double> take_number(std::string_view& text, double least, double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value >= least && value <= most)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// Parses FACTOR or, for YaRN, FACTOR:TRAINED_CONTEXT.
bool take_factor(std::string_view text, RopeScaling& out) {
  const auto factor = take_number(text, 1 / kLargestFactor, kLargestFactor);
  if (!factor) return false;
  out.factor = *factor;
  if (out.kind == RopeScaling::Kind::yarn && take(text, ":")) {
    const auto context = take_number(text, 1, kLongestContext);
    if (!context) return false;
    out.original_context = *context;
  }
  return text.empty();
}

/// Replaces the file's kind and factor by the user's, and keeps the rest.
void override_with(RopeScaling& out, std::string_view text) {
  const std::string_view whole = text;
  out.by_user = true;
  if (text == "longrope:short") {
    out.factors = RopeScaling::Factors::of_short_texts;
    return;
  }
  if (text == "longrope:long") {
    out.factors = RopeScaling::Factors::of_long_texts;
    return;
  }
  out.kind = RopeScaling::Kind::none;
  out.factor = 1;
  if (text == "none") return;
  if (take(text, "linear:")) {
    out.kind = RopeScaling::Kind::linear;
  } else if (take(text, "yarn:")) {
    out.kind = RopeScaling::Kind::yarn;
  }
  if (out.kind == RopeScaling::Kind::none || !take_factor(text, out))
    throw UsageError(fmt::format(
        "RoPE scaling '{}' is not supported: use none, linear:FACTOR, yarn:FACTOR, yarn:FACTOR:TRAINED_CONTEXT, "
        "longrope:short or longrope:long",
        whole));
}

RopeScaling::Kind kind_of(const GgufKeys& keys, const std::string& arch) {
  const auto type = keys.text(arch + ".rope.scaling.type").value_or("linear");
  if (type == "linear") return RopeScaling::Kind::linear;
  if (type == "yarn") return RopeScaling::Kind::yarn;
  if (type == "none" || type == "longrope") return RopeScaling::Kind::none;  // longrope consists of tensors of factors
  throw ModelError(fmt::format(
      "{}: {}.rope.scaling.type is '{}', expected none, linear, yarn or longrope (--rope-scaling overrides it)",
      keys.path(), arch, brief(type)));
}

double factor_of(const GgufKeys& keys, const std::string& arch) {
  const auto given = keys.number(arch + ".rope.scaling.factor", 0, kLargestFactor);
  const auto old_name = keys.number(arch + ".rope.scale_linear", 0, kLargestFactor);
  const double factor = given ? *given : old_name.value_or(0);
  if (factor == 0) return 1;
  if (factor < 1 / kLargestFactor)
    throw ModelError(fmt::format("{}: {}.rope.scaling.factor is {:g}, expected {:g} to {:g}", keys.path(), arch, factor,
                                 1 / kLargestFactor, kLargestFactor));
  return factor;
}

void read_yarn(const GgufKeys& keys, const std::string& prefix, RopeScaling& out) {
  constexpr double kMost = 1e6;
  out.fast_turns = keys.number(prefix + "beta_fast", 1 / kMost, kMost).value_or(out.fast_turns);
  out.slow_turns = keys.number(prefix + "beta_slow", 1 / kMost, kMost).value_or(out.slow_turns);
  out.log_multiplier = keys.number(prefix + "log_multiplier", 0, kMost).value_or(0);
}

/// Share of each pair's frequency that YaRN keeps: 1 for pairs that turn often in the trained context, 0 for slow ones.
class YarnRamp {
 public:
  YarnRamp(double base, int dims, const RopeScaling& scaling) {
    const auto pair_that_turns = [&](double times) {
      return dims * std::log(scaling.original_context / (2 * std::numbers::pi * times)) / (2 * std::log(base));
    };
    first_ = std::max(0.0, std::floor(pair_that_turns(scaling.fast_turns)));
    last_ = std::min(dims - 1.0, std::ceil(pair_that_turns(scaling.slow_turns)));
  }

  double kept(int pair) const {
    constexpr double kLeastWidth = 0.001;
    return 1 - std::clamp((pair - first_) / std::max(kLeastWidth, last_ - first_), 0.0, 1.0);
  }

 private:
  double first_;
  double last_;
};

}  // namespace

double RopeScaling::context(double context) const {
  // With YaRN, a file's context_length is the extended one; with linear scaling, the trained one.
  if (kind == Kind::linear) return context * factor;
  if (kind == Kind::yarn && by_user) return original_context * factor;
  return context;
}

RopeScaling read_rope_scaling(const GgufKeys& keys, const Architecture& architecture, int context,
                              const ModelOptions& options) {
  const std::string arch(architecture.name);
  RopeScaling out;
  out.file_context = keys.integer(arch + ".rope.scaling.original_context_length", 1, kLongestContext).value_or(context);
  out.original_context = out.file_context;
  if (architecture.yarn_keys) read_yarn(keys, arch + ".rope.scaling.yarn_", out);
  out.attention_factor = keys.number(arch + ".rope.scaling.attn_factor", 1e-3, 1e3).value_or(1);
  out.factor = factor_of(keys, arch);
  if (options.rope_scaling.empty()) {
    out.kind = kind_of(keys, arch);
  } else {
    keys.text(arch + ".rope.scaling.type");
    override_with(out, options.rope_scaling);
  }
  return out;
}

Rope scaled_rope(Rope::Pairing pairing, double base, int dims, const RopeScaling& scaling) {
  Rope rope;
  rope.pairing = pairing;
  double magnitude = scaling.attention_factor;
  std::optional<YarnRamp> ramp;
  if (scaling.kind == RopeScaling::Kind::yarn) {
    ramp.emplace(base, dims, scaling);
    const auto grown = [&](double multiplier) { return 1 + 0.1 * multiplier * std::log(scaling.factor); };
    if (scaling.factor > 1) magnitude *= grown(1) / grown(scaling.log_multiplier);
  }
  rope.magnitude = static_cast<float>(magnitude);
  const double slower = scaling.kind == RopeScaling::Kind::none ? 1 : 1 / scaling.factor;
  for (int i = 0; i < dims / 2; ++i) {
    const double kept = ramp ? ramp->kept(i) : 0;
    rope.frequency.push_back(static_cast<float>(std::pow(base, -2.0 * i / dims) * (slower * (1 - kept) + kept)));
  }
  return rope;
}

void divide(Rope& rope, const float* factors) {
  for (float& frequency : rope.frequency) frequency /= *factors++;
}

}  // namespace winnow::model
