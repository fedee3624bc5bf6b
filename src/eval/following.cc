#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "eval/plan.h"

namespace winnow::eval {

namespace {

using Logits = std::vector<float>;

constexpr int kSteps = 64;

std::size_t best(const Logits& logits) { return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()); }

std::vector<double> log_softmax(const Logits& logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - most);
  const double shift = most + std::log(sum);
  std::vector<double> out;
  for (const float x : logits) out.push_back(x - shift);
  return out;
}

/// Nats.
double divergence(const std::vector<double>& log_p, const std::vector<double>& log_q) {
  double out = 0;
  for (std::size_t i = 0; i < log_p.size(); ++i) out += std::exp(log_p[i]) * (log_p[i] - log_q[i]);
  return out;
}

struct Distance {
  double divergence = 0;
  int agreed = 0;
  int steps = 0;
};

void compare(const std::vector<Logits>& logits, std::vector<Distance>& distances) {
  const auto log_p = log_softmax(logits.front());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    distances[i].divergence += divergence(log_p, log_softmax(logits[i]));
    distances[i].agreed += best(logits[i]) == best(logits.front()) ? 1 : 0;
    ++distances[i].steps;
  }
}

/// One step of all with the same token.
void step(Session& session, std::vector<Cache>& caches, Token token, std::vector<Logits>& logits) {
  std::vector<Cache*> all;
  for (auto& cache : caches) all.push_back(&cache);
  const std::size_t width = logits.front().size();
  Logits next(width * caches.size());
  session.step(all, std::vector(caches.size(), token), next);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto from = next.begin() + static_cast<std::ptrdiff_t>(i * width);
    logits[i].assign(from, from + static_cast<std::ptrdiff_t>(width));
  }
}

}  // namespace

Measure following() {
  return [](Session& session, const Reading& reading, std::vector<Cache>& caches, std::vector<Logits> logits) {
    std::vector<Distance> distances(caches.size());
    const auto begin = Clock::now();
    for (int i = 0; i < kSteps; ++i) {
      // Where the question was seen first, the first token comes from full attention whatever the method.
      if (i > 0 || reading.protocol == Protocol::agnostic) compare(logits, distances);
      step(session, caches, static_cast<Token>(best(logits.front())), logits);
    }
    const double decode_ms = ms_since(begin);
    std::vector<Record> out(caches.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].score = static_cast<double>(distances[i].agreed) / distances[i].steps;
      out[i].values["kl"] = distances[i].divergence / distances[i].steps;
      out[i].timings.decode_ms = decode_ms;
    }
    return out;
  };
}

}  // namespace winnow::eval
