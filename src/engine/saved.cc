// SPDX-License-Identifier: Apache-2.0
#include "engine/saved.h"

#include <spdlog/fmt/fmt.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/layers.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

void check_prompt(const SavedHead& head, const ByteCursor& from) {
  if (head.spec_full != head.options.spec.print_full()) {
    throw InputError(fmt::format("{} was saved with {}, which this winnow reads as {}", from.source(), head.spec_full,
                                 head.options.spec.print_full()));
  }
  const auto& prompt = head.terms.prompt;
  if (prompt.tokens < 1 || prompt.tokens > head.seen ||
      prompt.group != head.model.of_layer(head.model.first_global()).group) {
    from.fail(fmt::format("its prompt has {} tokens, but {} have been seen", prompt.tokens, head.seen));
  }
  if (prompt.question < 0 || prompt.question > prompt.tokens)
    from.fail(fmt::format("its question has {} tokens, its prompt {}", prompt.question, prompt.tokens));
}

/// Checks that the file's numbers are those that this program computes: defaults of a spec may differ between versions,
/// and later steps rely on them.
void check_terms(const policy::Terms& saved, const policy::Terms& settled, const ByteCursor& from) {
  const auto& [prompt, budget, always_kept] = settled;
  if (saved.budget == budget && saved.always_kept.sinks == always_kept.sinks &&
      saved.always_kept.recent == always_kept.recent)
    return;
  from.fail(
      fmt::format("a budget of {} entries with {} first and {} recent ones does not follow from {} tokens ({}, {}, {})",
                  saved.budget, saved.always_kept.sinks, saved.always_kept.recent, prompt.tokens, budget,
                  always_kept.sinks, always_kept.recent));
}

/// Checks the invariants of a layer's lanes on which methods rely while decoding.
void check_layer(const model::LayerSpec& spec, const policy::SequenceLayer& layer, const SavedHead& head,
                 const ByteCursor& from) {
  const auto& method = layer.method();
  const auto& lanes = layer.lanes();
  const auto limit = layer.limit();
  for (int h = 0; h < lanes.shape().kv_heads; ++h) {
    const int most = limit[h];
    if (most < (method.decoding.evict ? 1 : 0)) from.fail(fmt::format("a lane's limit is {} entries", most));
    if (spec.window > 0 && (most != spec.window || !policy::holds_window(lanes, h, spec.window, head.seen))) {
      from.fail(fmt::format("a lane with a limit of {} entries does not hold the last of {} tokens in a window of {}",
                            most, head.seen, spec.window));
    }
    if (!method.evicts() && lanes.length(h) != head.seen) {
      from.fail(fmt::format("a lane has {} entries, but {} keeps all {}", lanes.length(h), method.name, head.seen));
    }
    if (method.one_set_per_layer && (lanes.length(h) != lanes.length(0) || most != limit[0])) {
      from.fail(fmt::format("lanes of a layer have {} and {} entries, but {} keeps one set", lanes.length(0),
                            lanes.length(h), method.name));
    }
  }
}

PromptSize size_of(const SavedHead& head) { return {head.terms.prompt.tokens, head.terms.prompt.question}; }

std::vector<float> read_logits(ByteCursor from, int vocabulary) {
  if (from.left() == 0) return {};
  std::vector<float> logits(vocabulary);
  from.read(std::span<float>(logits), "the logits");
  from.finish("the logits");
  return logits;
}

std::string layer_name(int layer) { return fmt::format("layer {}", layer); }

}  // namespace

void write_sequence(ByteSink& to, const Sequence& sequence, const ModelIdentity& model, std::span<const float> logits,
                    const Transcript& transcript) {
  MemorySink head;
  head_of(sequence, model, transcript).write(head);
  std::vector<std::size_t> lengths{head.bytes().size()};
  for (int layer = 0; layer < sequence.layers(); ++layer) lengths.push_back(sequence.layer(layer).saved_bytes());
  lengths.push_back(logits.size_bytes());

  cache::SectionWriter writer(to, kSavedFormat, lengths);
  writer.section([&](ByteSink& sink) { sink.write(head.bytes()); });
  for (int layer = 0; layer < sequence.layers(); ++layer)
    writer.section([&](ByteSink& sink) { sequence.layer(layer).save(sink); });
  writer.section([&](ByteSink& sink) { put(sink, logits); });
}

Restored read_sequence(const ByteSource& from, const ModelIdentity& model, const model::Hparams& hparams,
                       MemoryAccount& account) {
  const cache::SectionReader reader(from, kSavedFormat);
  if (reader.count() == 0) throw InputError(fmt::format("{} is damaged: it has no sections", from.name()));
  reader.verify(0, "its head");
  ByteCursor contents = reader.section(0);
  SavedHead head = SavedHead::read(contents, reader.count());
  check_model(head.model, model, from.name());
  check_prompt(head, contents);
  auto sequence =
      as_typed(contents, [&] { return std::make_unique<Sequence>(head.options, hparams, account, size_of(head)); });
  check_terms(head.terms, sequence->layer(head.model.first_global()).terms(), contents);

  sequence->seen = head.seen;
  sequence->tokens.assign(head.transcript.tokens.begin(), head.transcript.tokens.begin() + head.seen);
  for (int l = 0; l < hparams.n_kv_layer; ++l) {
    reader.verify(layer_section(l), layer_name(l));
    ByteCursor section = reader.section(layer_section(l));
    auto& layer = sequence->layer(l);
    layer.load(section, head.seen, std::move(head.limit[l]));
    check_layer(hparams.layer(l), layer, head, section);
  }
  const int last = reader.count() - 1;
  reader.verify(last, "its logits");
  auto logits = read_logits(reader.section(last), hparams.n_vocab);
  return {Cache(std::move(sequence)), std::move(logits), std::move(head.transcript)};
}

}  // namespace winnow::engine
