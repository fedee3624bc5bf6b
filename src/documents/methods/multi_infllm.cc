// SPDX-License-Identifier: Apache-2.0
#include "base/as_size.h"
#include "documents/ask_method.h"

namespace winnow::documents::methods {

namespace {

/// State column of infllm, [column][KV head][entry]: attention that each token received in its own document.
cache::KeepPlan received(const Joint& joint, int layer) {
  cache::KeepPlan plan;
  auto& heads = plan.state.emplace_back(as_size(joint.hparams().layer(layer).n_head_kv));
  for (int i = 0; i < joint.count(); ++i) {
    const auto& of = joint.document(i).head().layers[layer].received;
    const auto tokens = static_cast<std::ptrdiff_t>(joint.document(i).tokens());
    auto begin = of.begin();
    for (auto& head : heads) {
      head.insert(head.end(), begin, begin + tokens);
      begin += tokens;
    }
  }
  return plan;
}

Steps run_multi_infllm(const AskContext& context) {
  const auto& joint = context.joint;
  Assembly assembly(context.session, joint, context.cache, joint.tokens());
  {
    const PhaseTimer timer(context.asked, "assemble");
    for (int layer = 0; layer < context.hparams().n_layer; ++layer) {
      context.session.check_stop();
      assembly.scratch().load(layer, joint.everything());
      assembly.commit(layer, received(joint, layer));
      co_yield kPause;
    }
  }
  auto answering = answer(context, assembly);
  while (answering.advance()) co_yield kPause;
}

}  // namespace

/// InfLLM over the concatenated caches: representatives are chosen by the attention within each document. The first
/// document's head is initial, and the last document's tail is local. Needs a budget: the number of entries that a
/// query reads.
AskMethod multi_infllm() {
  return {.name = "multi-infllm",
          .summary = "joins the stored caches; each query reads the most relevant blocks",
          .paper = "the baseline of SamKV's paper (2025), after Xiao et al. 2024, InfLLM",
          .options = {},
          .cache_spec = "infllm",
          .run = run_multi_infllm};
}

}  // namespace winnow::documents::methods
