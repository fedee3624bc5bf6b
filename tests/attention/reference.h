// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

/// Attention in double precision by plain loops, with error bounds for f32. Shares no code with winnow.
namespace winnow::reference {

/// Error bounds, to first order in the unit roundoff u = 2^-24 of f32 (eps_f32 / 2).
///
/// k roundings of one quantity: |error| <= k u relative in the worst case, and at most 8 sqrt(k) u but with a
/// probability below 2 exp(-32) (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019, theorem 2.4 with lambda = 8),
/// whatever the order of the sum. So, for one query:
///
///   logit      s_j = scale q·k_j: the factor (1 rounding) scales the query (1 rounding), d products are summed (d
///   roundings):
///                                 e_j = roundings(d + 2) sum_i |scale q_i k_ji|
///   exponential p_j = exp(s_j - m): a difference times a rounded log2(e) is rounded three times, 3 u |s_j - m|, exp
///   itself costs 2 u;
///              e_j enters as it is; m's own error cancels, because all p_j have the same. When parts are brought to a
///              larger m, the arguments add up to at most |s_j - m|, each step costs exp 2 u and one product u, and
///              each key brings at most one step:
///                                 r_j = e_j + u (4 |s_j - m| + 2) + roundings(3 n)
///   sum        n terms:           roundings(n), and the division 2 u
///   weight     A_j = p_j / sum:   |error| <= A_j (r_j + sum_k A_k r_k + roundings(n) + 2 u)
///   output     o = sum_j A_j v_j: |error| <= sum_j A_j |v_j| (r_j + sum_k A_k r_k + 2 roundings(n) + 2 u)
///
/// With a soft cap the logit is z_j = cap tanh(s_j / cap), whose slope is at most 1. Highway's tanh errs by 4 units in
/// the last place (8 u), and the cap and the products with it are rounded:   e_j += 12 u |z_j|
/// A sink is one term more of the sum, whose logit is rounded once:          e_sink = 2 u |sink|
///
/// Where factors are rounded to bf16 (unit roundoff b = 2^-9), to first order in b:
///
///   logit      scale q and k are rounded once each:                   e_j += 2 b sum_i |scale q_i k_ji|
///   exponential by a polynomial of relative error x = 2^-13, in the numerator and in the sum:   r_j += x
///   output     each p_j and v_j is rounded once, independently of the others (the sum is of what p_j was before):
///              |error| += 8 b sqrt(2 sum_j (A_j v_j)^2), with the probability above
///   weight     that attention reports: p_j rounded:                   |error| += b A_j
inline constexpr double kRoundoff = 1.0 / (1 << 24);

struct Rounding {
  double factors = 0;      ///< of queries, keys and values; 0 if bf16 holds them exactly
  double weights = 0;      ///< of probabilities
  double exponential = 0;  ///< in addition to that of f32
};
inline constexpr double kRoundoffBf16 = 1.0 / (1 << 9);
inline constexpr double kExponentialBf16 = 1.0 / (1 << 13);

inline double roundings(double k) { return kRoundoff * std::min(k, 8 * std::sqrt(k)); }

constexpr double kNone = -std::numeric_limits<double>::infinity();

/// Scale and soft cap, which turn products into logits, and the logit of a sink.
struct Logits {
  double scale = 0;
  double cap = 0;  ///< 0: there is none
  double sink = kNone;
};

/// One query over n keys.
struct Result {
  double sink = kNone;
  double sink_weight = 0;
  double sink_error = 0;            ///< bound of the weight's
  std::vector<double> logit;        ///< [n]
  std::vector<double> logit_error;  ///< [n] bound
  std::vector<double> weight;       ///< [n] softmax
  std::vector<double> weight_error;
  std::vector<double> out;  ///< [d]
  std::vector<double> out_error;
};

/// q [d], keys and values [n][d], n = keys.size() / d. No keys: zeros.
Result attend(std::span<const float> q, std::span<const float> keys, std::span<const float> values,
              const Logits& logits, const Rounding& rounding = {});

/// Turns pair (x, y) of a head from one position to another, in double precision; pairs (2i, 2i + 1) or (i, i + n/2).
inline std::vector<float> rotated(std::span<const float> head, std::span<const float> frequency, bool adjacent,
                                  std::int64_t positions) {
  std::vector<float> out(head.begin(), head.end());
  for (std::size_t i = 0; i < frequency.size(); ++i) {
    const std::size_t x = adjacent ? 2 * i : i;
    const std::size_t y = adjacent ? 2 * i + 1 : i + frequency.size();
    const double angle = static_cast<double>(positions) * static_cast<double>(frequency[i]);
    out[x] = static_cast<float>(static_cast<double>(head[x]) * std::cos(angle) -
                                static_cast<double>(head[y]) * std::sin(angle));
    out[y] = static_cast<float>(static_cast<double>(head[x]) * std::sin(angle) +
                                static_cast<double>(head[y]) * std::cos(angle));
  }
  return out;
}

}  // namespace winnow::reference
