// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <spdlog/fmt/fmt.h>

#include "bind.h"
#include "session_cache.h"
#include "winnow/recommended.h"

namespace winnow::python {

namespace {

using Positions = std::vector<std::vector<std::vector<std::int32_t>>>;

std::vector<std::vector<Integers>> kept(SessionCache& self) {
  const auto positions =
      std::make_shared<const Positions>(self.session().look([&](Session&) { return self.cache().kept(); }));
  std::vector<std::vector<Integers>> out;
  for (const auto& layer : *positions) {
    auto& heads = out.emplace_back();
    for (const auto& head : layer)
      heads.emplace_back(head.data(), std::initializer_list<std::size_t>{head.size()}, owner_of(positions));
  }
  return out;
}

CacheStats stats(SessionCache& self) {
  return self.session().look([&](Session&) { return self.cache().stats(); });
}

nb::object logits(const SessionCache& self) {
  if (!self.logits()) return nb::none();
  return nb::cast(Floats(self.logits()->data(), {self.logits()->size()}, owner_of(self.logits())));
}

CachePointer clone(SessionCache& self) {
  return self.session().look([&](Session&) {
    return std::make_shared<SessionCache>(self.shared_session(), self.cache().clone(), self.logits(), self.transcript(),
                                          self.cached_tokens());
  });
}

void bind_stats(nb::module_& m) {
  nb::class_<CacheStats>(m, "CacheStats", "Contents of a cache.")
      .def_ro("entries_per_head_mean", &CacheStats::entries_per_head_mean)
      .def_ro("entries_min", &CacheStats::entries_min, "The least over layers and KV heads.")
      .def_ro("entries_max", &CacheStats::entries_max)
      .def_ro("attended_per_head_mean", &CacheStats::attended_per_head_mean,
              "Mean number of entries that a query reads.")
      .def_ro("bytes_held", &CacheStats::bytes_held, "Allocated bytes.")
      .def_ro("bytes_full", &CacheStats::bytes_full, "Bytes of the f16 cache of all tokens seen.")
      .def_ro("tokens_seen", &CacheStats::tokens_seen);
}

}  // namespace

void bind_cache(nb::module_& m) {
  bind_stats(m);
  nb::class_<SessionCache>(m, "Cache", "The compressed keys and values of one sequence. Made by a Session.")
      .def("kept", kept,
           "Kept positions, ascending: [layer][KV head], each an array [entries] of int32. Heads may keep different\n"
           "numbers.")
      .def_prop_ro(
          "bytes_held", [](SessionCache& self) { return stats(self).bytes_held; }, "Allocated bytes.")
      .def_prop_ro("tokens_seen", [](SessionCache& self) { return stats(self).tokens_seen; })
      .def("stats", stats)
      .def_prop_ro(
          "logits", logits, nb::sig("def logits(self) -> numpy.ndarray | None"),
          "Logits of the last token: a read-only array [n_vocab] of float32, or None if they are not known, as after\n"
          "an answer.")
      .def_prop_ro("options",
                   [](SessionCache& self) {
                     return self.session().look([&](Session&) {
                       const auto& options = self.cache().options();
                       return CacheChoice{options.spec, options.budget, options.kv_type};
                     });
                   })
      .def_prop_ro(
          "tokens",
          [](const SessionCache& self) {
            const auto& tokens = self.transcript().tokens;
            return array_of<Integers>(std::vector<Token>(tokens), {tokens.size()});
          },
          nb::rv_policy::automatic,
          "All tokens so far, [tokens] of int32: the last ones may be read with the next question.")
      .def_prop_ro("cached_tokens", &SessionCache::cached_tokens,
                   "Tokens of the prompt that the session knew from earlier prompts, and did not read again.")
      .def("clone", clone, "A copy with memory of its own. Raises OutOfMemoryError.")
      .def("__repr__", [](SessionCache& self) {
        const auto now = stats(self);
        return fmt::format("<winnow.Cache of {} tokens, {:.0f} entries per head, {} bytes>", now.tokens_seen,
                           now.entries_per_head_mean, now.bytes_held);
      });
}

}  // namespace winnow::python
