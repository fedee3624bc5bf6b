#include "base/clock.h"
#include "eval/distance.h"
#include "eval/plan.h"

namespace winnow::eval {

namespace {

using Logits = std::vector<float>;

constexpr int kSteps = 64;

void compare(const std::vector<Logits>& logits, std::vector<Distance>& distances) {
  const Reference full(logits.front());
  for (std::size_t i = 0; i < logits.size(); ++i) full.compare(logits[i], distances[i]);
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
