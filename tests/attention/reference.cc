// SPDX-License-Identifier: Apache-2.0
// The attention tests spend most of their time here, so this file is compiled with optimisation.
#include "reference.h"

namespace winnow::reference {

namespace {

struct Product {
  double sum = 0;
  double size = 0;  ///< sum of magnitudes
};

Product product(const float* q, const float* key, std::size_t d) {
  Product out;
  for (std::size_t i = 0; i < d; ++i) {
    const double term = static_cast<double>(q[i]) * static_cast<double>(key[i]);
    out.sum += term;
    out.size += std::abs(term);
  }
  return out;
}

/// Adds the weighted value to the output [d], the value times the weight's error to the output's error, and the squared
/// terms to the squares.
void add_value(const float* value, double weight, double error, std::size_t d, double* __restrict out,
               double* __restrict out_error, double* __restrict squares) {
  for (std::size_t i = 0; i < d; ++i) {
    const double term = weight * static_cast<double>(value[i]);
    out[i] += term;
    out_error[i] += std::abs(term) * error;
    squares[i] += term * term;
  }
}

void logits_of(Result& r, std::span<const float> q, std::span<const float> keys, const Logits& logits,
               const Rounding& rounding) {
  const std::size_t d = q.size();
  const double relative = roundings(static_cast<double>(d) + 2) + 2 * rounding.factors;
  for (std::size_t j = 0; j < keys.size() / d; ++j) {
    const auto [sum, size] = product(q.data(), keys.data() + j * d, d);
    double s = sum * logits.scale;
    double error = relative * size * std::abs(logits.scale);
    if (logits.cap > 0) {
      s = logits.cap * std::tanh(s / logits.cap);
      error += 12 * kRoundoff * std::abs(s);
    }
    r.logit.push_back(s);
    r.logit_error.push_back(error);
  }
}

}  // namespace

Result attend(std::span<const float> q, std::span<const float> keys, std::span<const float> values,
              const Logits& logits, const Rounding& rounding) {
  const std::size_t d = q.size();
  const std::size_t n = keys.size() / d;
  Result r;
  r.sink = logits.sink;
  logits_of(r, q, keys, logits, rounding);
  double m = r.sink;
  for (const double s : r.logit) m = std::max(m, s);
  const double of_sink = r.sink == kNone ? 0 : std::exp(r.sink - m);
  double total = of_sink;
  for (const double s : r.logit) r.weight.push_back(std::exp(s - m));
  for (const double w : r.weight) total += w;
  const auto terms = static_cast<double>(n) + (r.sink == kNone ? 0 : 1);
  double mean_error = 0;
  if (of_sink > 0) {
    r.sink_weight = of_sink / total;
    r.sink_error = kRoundoff * (2 * std::abs(r.sink) + 4 * std::abs(r.sink - m) + 2) + roundings(3 * terms);
    mean_error = r.sink_weight * r.sink_error;
  }
  for (std::size_t j = 0; j < n; ++j) {
    r.weight[j] /= total;
    r.weight_error.push_back(r.logit_error[j] + kRoundoff * (4 * std::abs(r.logit[j] - m) + 2) + roundings(3 * terms) +
                             rounding.exponential);
    mean_error += r.weight[j] * r.weight_error[j];
  }
  r.sink_error = r.sink_weight * (r.sink_error + mean_error + roundings(terms) + 2 * kRoundoff);
  r.out.assign(d, 0);
  r.out_error.assign(d, 0);
  std::vector<double> squares(d, 0);
  for (std::size_t j = 0; j < n; ++j) {
    const double relative = r.weight_error[j] + mean_error + roundings(terms) + 2 * kRoundoff;
    add_value(&values[j * d], r.weight[j], relative + roundings(terms), d, r.out.data(), r.out_error.data(),
              squares.data());
    r.weight_error[j] = r.weight[j] * (relative + rounding.weights);
  }
  const double each = std::hypot(rounding.weights, rounding.factors);
  for (std::size_t i = 0; i < d; ++i) r.out_error[i] += 8 * each * std::sqrt(squares[i]);
  return r;
}

}  // namespace winnow::reference
