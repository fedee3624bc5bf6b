// SPDX-License-Identifier: Apache-2.0
#include "documents/ask_method.h"

namespace winnow::documents::methods {

namespace {

Steps run_reuse(const AskContext& context) {
  const auto& joint = context.joint;
  const auto places = context.options.text("positions") == "raw" ? KeyPlaces::raw : KeyPlaces::shifted;
  Assembly assembly(context.session, joint, context.cache, joint.tokens(), places);
  {
    const PhaseTimer timer(context.asked, "assemble");
    for (int layer = 0; layer < context.hparams().n_layer; ++layer) {
      context.session.check_stop();
      cache::KeepPlan plan;
      if (joint.has_compressed()) {
        plan.heads = assembly.scratch().load_all(layer);
      } else {
        assembly.scratch().load(layer, joint.everything());
      }
      assembly.commit(layer, plan);
      co_yield kPause;
    }
  }
  auto answering = answer(context, assembly);
  while (answering.advance()) co_yield kPause;
}

}  // namespace

/// The concatenated caches, unchanged: no document has seen another one.
///   positions  shifted: keys move with their document; raw: keys of all documents stay rotated from position 0
AskMethod reuse() {
  return {.name = "reuse",
          .summary = "joins the stored caches and recomputes nothing",
          .paper = "the baseline of SamKV's paper (2025)",
          .options = {{"positions", policy::Option::Choice{"shifted", {"shifted", "raw"}},
                       "whether keys are rotated to their document's place, or stay rotated as from position 0"}},
          .cache_spec = "full",
          .takes_compressed = true,
          .run = run_reuse};
}

}  // namespace winnow::documents::methods
