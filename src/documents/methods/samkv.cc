// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/as_size.h"
#include "documents/ask_method.h"
#include "documents/facts.h"
#include "documents/select.h"
#include "engine/precision.h"

namespace winnow::documents::methods {

namespace {

/// Kept and recomputed tokens of one layer.
struct LayerChoice {
  TokenRanges kept;
  std::vector<std::int32_t> recomputed;  ///< joint positions
};

class SamKv {
 public:
  explicit SamKv(const AskContext& context) : context_(context), joint_(context.joint) {}

  Steps run() {
    MiddleBlocks middle = no_blocks();
    if (option("select") == "on") {
      std::vector<std::vector<double>> question;
      auto reading = read_mean_queries(question);
      while (reading.advance()) co_yield kPause;
      const PhaseTimer timer(context_.asked, "select");
      middle = select_blocks(joint_, question, select_options());
    }
    choose(middle);
    auto answering = recompute_and_answer();
    while (answering.advance()) co_yield kPause;
  }

 private:
  const std::string& option(const char* name) const { return context_.options.text(name); }
  int layers() const { return context_.hparams().n_layer; }

  SelectOptions select_options() const {
    return {option("personalize") == "on" ? Personalize::on : Personalize::off,
            option("score") == "cosine" ? BlockScore::cosine : BlockScore::zscore,
            context_.options.integer_if("deciding").value_or(usual_deciding_layers(layers()))};
  }

  MiddleBlocks no_blocks() const { return {as_size(layers()), std::vector<std::vector<int>>(as_size(joint_.count()))}; }

  /// Computes the question's mean query in each layer by reading it over the initial and local blocks.
  Steps read_mean_queries(std::vector<std::vector<double>>& out) {
    const PhaseTimer timer(context_.asked, "question");
    const auto edges = joint_.edges();
    const int seen = static_cast<int>(positions_of(joint_, edges).size());
    const int count = static_cast<int>(context_.question.size());
    RowPlan plan;
    std::vector<std::int32_t> positions;
    for (int i = 0; i < count; ++i) {
      positions.push_back(joint_.tokens() + i);
      plan.store.push_back(seen + i);
      plan.leading.push_back(seen + i + 1);
      plan.own.push_back(-1);
    }
    auto& session = context_.session;
    JointScratch scratch(session.account,
                         engine::scratch_type(session.options.precision, std::span(&context_.cache, 1)), joint_,
                         seen + count);
    ChosenTokens chosen(session, context_.question, positions);
    for (int layer = 0; layer < layers(); ++layer) {
      session.check_stop();
      scratch.load(layer, edges);
      scratch.scratch().extend(positions);
      const auto& spec = context_.hparams().layer(layer);
      auto& sum = out.emplace_back(as_size(spec.n_head) * as_size(spec.head_dim));
      chosen.run(layer, scratch.scratch(), plan, sum);
      for (double& x : sum) x /= count;
      co_yield kPause;
    }
  }

  void choose(const MiddleBlocks& middle) {
    context_.asked.kept_blocks.clear();
    for (int layer = 0; layer < layers(); ++layer) {
      auto& choice = choices_.emplace_back();
      auto& reported = context_.asked.kept_blocks.emplace_back();
      for (int i = 0; i < joint_.count(); ++i) {
        const auto blocks = blocks_of(i, middle[layer][i]);
        choice.kept.push_back(stretches(i, blocks));
        if (option("recompute") == "on") add_recomputed(layer, i, blocks, choice.recomputed);
        reported.push_back(blocks);
      }
    }
  }

  /// The initial, kept middle and local blocks of a document.
  std::vector<int> blocks_of(int document, std::span<const int> middle) const {
    const auto layout = joint_.layout(document);
    std::vector<int> out = {0};
    for (const int b : middle) out.push_back(b + 1);
    for (int b = layout.first_local(); b < layout.blocks(); ++b) out.push_back(b);
    return out;
  }

  std::vector<TokenRange> stretches(int document, std::span<const int> blocks) const {
    const auto layout = joint_.layout(document);
    std::vector<TokenRange> out;
    for (const int b : blocks) {
      if (!out.empty() && out.back().end == layout.begin(b)) {
        out.back().end = layout.end(b);
      } else {
        out.push_back({layout.begin(b), layout.end(b)});
      }
    }
    return out;
  }

  void add_recomputed(int layer, int document, std::span<const int> blocks, std::vector<std::int32_t>& out) const {
    const auto layout = joint_.layout(document);
    const auto unusual =
        outliers(joint_.document(document).head().layers[layer].representatives, context_.options.number("sigma"));
    for (const int b : blocks) {
      const bool edge = b == 0 || b >= layout.first_local();
      const auto in_block = [&](std::int32_t token) { return token / kBlock == b; };
      const auto anchor = std::find_if(unusual.begin(), unusual.end(), in_block);
      if (!edge && anchor == unusual.end()) continue;
      const bool whole = edge || option("anchor") == "block";
      const int begin = whole ? layout.begin(b) : *anchor;
      const int end = whole ? layout.end(b) : *anchor + 1;
      for (int token = begin; token < end; ++token) out.push_back(joint_.offset(document) + token);
    }
  }

  /// [token]: the last layer that recomputes it, or -1.
  std::vector<int> tops() const {
    std::vector<int> out(as_size(joint_.tokens()), -1);
    for (int layer = 0; layer < layers(); ++layer) {
      for (const auto position : choices_[layer].recomputed) out[position] = layer;
    }
    return out;
  }

  /// The recomputed tokens whose new and stored keys and values are fused.
  std::vector<std::int32_t> fused(std::span<const std::int32_t> recomputed) const {
    std::vector<std::int32_t> out;
    if (option("update") == "overwrite") return out;
    const int fresh = context_.options.integer("fresh");
    for (const auto position : recomputed) {
      const int document = joint_.document_of(position);
      if (document == 0 || position - joint_.offset(document) >= fresh) out.push_back(position);
    }
    return out;
  }

  Steps recompute_and_answer() {
    const auto top = tops();
    std::vector<Token> tokens;
    std::vector<std::int32_t> positions;
    for (int position = 0; position < joint_.tokens(); ++position) {
      if (top[position] < 0) continue;
      positions.push_back(position);
      tokens.push_back(joint_.token_id(position));
    }
    std::size_t most = 0;
    for (const auto& choice : choices_) most = std::max(most, positions_of(joint_, choice.kept).size());
    Assembly assembly(context_.session, joint_, context_.cache, static_cast<int>(most + positions.size()));
    {
      const PhaseTimer timer(context_.asked, "assemble");
      ChosenTokens chosen(context_.session, tokens, positions);
      for (int layer = 0; layer < layers(); ++layer) {
        const auto& recomputed = choices_[layer].recomputed;
        assembly.layer(layer, choices_[layer].kept, chosen, recomputed, top, fused(recomputed));
        co_yield kPause;
      }
    }
    auto answering = answer(context_, assembly);
    while (answering.advance()) co_yield kPause;
  }

  const AskContext& context_;
  const Joint& joint_;
  std::vector<LayerChoice> choices_;  ///< [layer]
};

Steps run_samkv(const AskContext& context) {
  SamKv samkv(context);
  auto work = samkv.run();
  while (work.advance()) co_yield kPause;
}

}  // namespace

/// SamKV (Cao et al., 2025, "Sparse Attention across Multiple-context KV Cache"): keeps the first block and the last
/// two blocks of each document, and the middle blocks that the question needs, chosen in each layer. Recomputes edge
/// tokens and outliers within the sparse cache, so that the documents see each other. Then reads the question again.
///   select       off: only initial and local blocks are kept
///   personalize  off: a document's blocks are ranked by the question alone, without other documents' local queries
///   deciding     last layers that decide how many blocks are offered; paper: the share in the paper's models
///   score        comparison of blocks of different documents: by the cosine, or by inner products, standardised over
///                the blocks that each document offers
///   recompute    off: stored entries are not changed
///   anchor       whether an outlier is recomputed alone or with its block
///   sigma        number of deviations below the mean at which an exponent is an outlier
///   update       how recomputed entries are stored
///   fresh        with fusion: first tokens of each later document that are overwritten; none in the paper
AskMethod samkv() {
  using policy::Option;
  const auto on_off = [](const char* name, const char* effect) {
    return Option{name, Option::Choice{"on", {"on", "off"}}, effect};
  };
  return {
      .name = "samkv",
      .summary = "keeps the first, last and relevant blocks of each document and recomputes some of their tokens",
      .paper = "Cao et al. 2025, Sparse Attention across Multiple-context KV Cache",
      .options =
          {{"update", Option::Choice{"fusion", {"fusion", "overwrite"}},
            "whether recomputed entries are mixed with the stored ones or replace them"},
           {"fresh", Option::Integer{1, 0, kBlock},
            "first tokens of each document but the first that are replaced even with fusion"},
           on_off("personalize", "whether queries of the other documents are added to the question's"),
           on_off("recompute", "whether the first and last blocks and outliers are recomputed"),
           on_off("select", "whether relevant blocks between the first and the last ones are kept"),
           {"score", Option::Choice{"cosine", {"cosine", "zscore"}}, "how blocks of different documents are compared"},
           {"anchor", Option::Choice{"token", {"token", "block"}},
            "whether an outlier is recomputed alone or with its block"},
           {"sigma", Option::Number{kOutlierFactor, 0, 100},
            "standard deviations below the mean at which an exponent makes an outlier"},
           {"deciding", Option::WordOrInteger{"paper", 1, 100000},
            "last layers that decide how many blocks are offered; paper: 14 % of the layers, as in its three models"}},
      .run = run_samkv};
}

}  // namespace winnow::documents::methods
