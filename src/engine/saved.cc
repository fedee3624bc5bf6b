// SPDX-License-Identifier: Apache-2.0
#include "engine/saved.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "base/hash.h"
#include "cache/lanes_file.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

constexpr std::int32_t kMostTokens = std::int32_t{1} << 30U;  ///< positions of what comes after must fit too

/// Blocks whose summaries a sequence has.
int summaries_of(const policy::Method& method, int seen) {
  return method.lanes.summary_rows > 0 ? seen / method.lanes.summary_block + 1 : 0;
}

ElementType element_type(std::uint32_t code, const ByteCursor& from) {
  constexpr auto kLast = static_cast<std::uint32_t>(ElementType::q4_0);
  if (code > kLast) from.fail(fmt::format("the entries' type is {}, expected 0 to {}", code, kLast));
  return static_cast<ElementType>(code);
}

/// A choice of two.
template <class Enum>
Enum choice(std::uint32_t code, const char* what, const ByteCursor& from) {
  if (code > 1) from.fail(fmt::format("{} is {}, expected 0 or 1", what, code));
  return static_cast<Enum>(code);
}

/// What is read from texts as a user would have typed them, with a file's error.
template <class Read>
auto as_typed(const ByteCursor& from, const Read& read) {
  try {
    return read();
  } catch (const UsageError& error) {
    from.fail(error.what());
  }
}

/// What stands for the heads of all layers where those of each layer follow.
constexpr SavedHeads kHeadsDiffer{};

void put_heads(ByteSink& to, const SavedHeads& heads) {
  for (const auto number : {heads.kv_heads, heads.group, heads.head_dim}) put(to, number);
}

void write_model(ByteSink& to, const ModelIdentity& model) {
  put(to, std::string_view(model.name));
  put(to, std::string_view(model.arch));
  put(to, model.file);
  put(to, model.rope);
  const bool uniform = model.heads.size() == 1;
  put(to, model.layers);
  put_heads(to, uniform ? model.heads.front() : kHeadsDiffer);
  put(to, model.vocabulary);
  if (uniform) return;
  for (const auto& heads : model.heads) put_heads(to, heads);
}

std::int32_t take_count(ByteCursor& from) {
  const auto count = from.take<std::int32_t>("the model's shape");
  if (count < 1) from.fail(fmt::format("the model's shape has a {}, expected 1 or more", count));
  return count;
}

SavedHeads read_heads(ByteCursor& from) {
  SavedHeads heads;
  for (auto* const number : {&heads.kv_heads, &heads.group, &heads.head_dim})
    *number = from.take<std::int32_t>("the model's shape");
  return heads;
}

/// The heads of each layer of a model whose layers differ.
std::vector<SavedHeads> read_layers_heads(ByteCursor& from, std::int32_t layers) {
  if (as_size(layers) > from.left() / sizeof(SavedHeads))
    from.fail(fmt::format("the heads of {} layers do not fit in the {} bytes left", layers, from.left()));
  std::vector<SavedHeads> out(layers);
  for (auto& heads : out) heads = read_heads(from);
  return out;
}

constexpr std::int32_t kMostHeads = 1 << 15;  ///< and dimensions of one: their products are numbers, too

void check_heads(const SavedHeads& heads, const ByteCursor& from) {
  for (const auto number : {heads.kv_heads, heads.group, heads.head_dim}) {
    if (number < 1 || number > kMostHeads)
      from.fail(fmt::format("the model's shape has a {}, expected 1 to {}", number, kMostHeads));
  }
}

ModelIdentity read_model(ByteCursor& from) {
  ModelIdentity model;
  model.name = from.text("the model's name");
  model.arch = from.text("the model's architecture");
  model.file = from.take<std::uint64_t>("the model's hash");
  model.rope = from.take<std::uint64_t>("the hash of its RoPE");
  model.layers = take_count(from);
  model.heads = {read_heads(from)};
  model.vocabulary = take_count(from);
  if (model.heads.front() == kHeadsDiffer) model.heads = read_layers_heads(from, model.layers);
  for (const auto& heads : model.heads) check_heads(heads, from);
  return model;
}

CacheOptions read_options(ByteCursor& from, std::string& spec_full) {
  const std::string spec = from.text("the spec");
  spec_full = from.text("the full spec");
  const std::string budget = from.text("the budget");
  CacheOptions options;
  options.kv_type.key = element_type(from.take<std::uint32_t>("the keys' type"), from);
  options.kv_type.value = element_type(from.take<std::uint32_t>("the values' type"), from);
  return as_typed(from, [&] {
    options.spec = Spec::parse(spec);
    if (!budget.empty()) options.budget = Budget::parse(budget);
    options.check();
    return options;
  });
}

policy::Terms read_terms(ByteCursor& from) {
  policy::Terms terms;
  for (auto* const number :
       {&terms.prompt.tokens, &terms.prompt.group, &terms.budget, &terms.always_kept.sinks, &terms.always_kept.recent})
    *number = from.take<std::int32_t>("what was settled for the prompt");
  return terms;
}

/// Of a number of messages: the role of each stands before it. Files from before roles have the system's message by
/// itself, and then messages of the user and the assistant in turn.
constexpr std::uint32_t kWithRoles = 1U << 31U;

void write_transcript(ByteSink& to, const Transcript& transcript) {
  const auto& [conversation, tokens] = transcript;
  put(to, static_cast<std::uint32_t>(conversation.format));
  put(to, static_cast<std::uint32_t>(conversation.control));
  put(to, std::string_view());
  put(to, std::string_view(conversation.text));
  put(to, static_cast<std::uint32_t>(conversation.messages.size()) | kWithRoles);
  for (const auto& [role, content] : conversation.messages) {
    put(to, static_cast<std::uint32_t>(role));
    put(to, std::string_view(content));
  }
  put(to, static_cast<std::uint32_t>(tokens.size()));
  put(to, std::span<const Token>(tokens));
}

/// Checks a number of things that take at least four bytes each, so that a list of them can be allocated.
std::size_t checked_count(std::uint32_t count, const char* what, const ByteCursor& from) {
  if (count > from.left() / 4) from.fail(fmt::format("{} are {}, {} bytes are left", what, count, from.left()));
  return count;
}

Role read_role(ByteCursor& from) {
  const auto code = from.take<std::uint32_t>("a message's role");
  constexpr auto kLast = static_cast<std::uint32_t>(Role::assistant);
  if (code > kLast) from.fail(fmt::format("a message's role is {}, expected 0 to {}", code, kLast));
  return static_cast<Role>(code);
}

Conversation read_conversation(ByteCursor& from) {
  Conversation out;
  out.format = choice<PromptFormat>(from.take<std::uint32_t>("the prompt's format"), "the prompt's format", from);
  out.control =
      choice<ControlTokens>(from.take<std::uint32_t>("what control tokens are"), "what control tokens are", from);
  const std::string system = from.text("the system message");
  out.text = from.text("the text");
  const auto count = from.take<std::uint32_t>("the messages");
  if (!system.empty()) out.messages.push_back({Role::system, system});
  for (std::size_t left = checked_count(count & ~kWithRoles, "the messages", from); left > 0; --left) {
    const Message* const last = out.last();
    const Role next = last != nullptr && last->role == Role::user ? Role::assistant : Role::user;
    const Role role = (count & kWithRoles) != 0 ? read_role(from) : next;
    out.messages.push_back({role, from.text("a message")});
  }
  return out;
}

Transcript read_transcript(ByteCursor& from, int seen, int vocabulary) {
  Transcript out{read_conversation(from), {}};
  out.tokens.resize(checked_count(from.take<std::uint32_t>("the tokens"), "the tokens", from));
  from.read(std::span<Token>(out.tokens), "the tokens");
  const auto count = out.tokens.size();
  if (count < as_size(seen) || count > as_size(kMostTokens))
    from.fail(fmt::format("it has {} tokens, {} have been seen", count, seen));
  for (const Token token : out.tokens) {
    if (token < 0 || token >= vocabulary)
      from.fail(fmt::format("a token is {}, the vocabulary has {}", token, vocabulary));
  }
  return out;
}

/// That the numbers are those which this program would have settled: a spec's defaults may differ between versions, and
/// later steps rely on them.
void check_terms(const SavedHead& head, const model::Hparams& hparams, const ByteCursor& from) {
  if (head.spec_full != head.options.spec.print_full()) {
    throw InputError(fmt::format("{} was saved with {}, which this program reads as {}", from.source(), head.spec_full,
                                 head.options.spec.print_full()));
  }
  const auto& prompt = head.terms.prompt;
  if (prompt.tokens < 1 || prompt.tokens > head.seen || prompt.group != head.model.of_layer(0).group) {
    from.fail(fmt::format("its prompt has {} tokens, {} have been seen", prompt.tokens, head.seen));
  }
  as_typed(from, [&] { return layer_budgets(head.options, hparams, prompt.tokens); });
  const auto [unused, budget, always_kept] = terms_of(head.options, hparams, prompt.tokens).front();
  if (head.terms.budget != budget || head.terms.always_kept.sinks != always_kept.sinks ||
      head.terms.always_kept.recent != always_kept.recent) {
    from.fail(fmt::format(
        "a budget of {} entries with {} first and {} recent ones does not follow from {} tokens ({}, {}, {})",
        head.terms.budget, head.terms.always_kept.sinks, head.terms.always_kept.recent, prompt.tokens, budget,
        always_kept.sinks, always_kept.recent));
  }
}

/// What the methods take for granted of a layer's lanes while decoding.
void check_layer(const model::LayerSpec& spec, const cache::LayerLanes& lanes, std::span<const int> limit,
                 const SavedHead& head, const ByteCursor& from) {
  const auto& method = head.options.spec.method();
  for (int h = 0; h < lanes.shape().kv_heads; ++h) {
    const int most = limit[h];
    if (most < (method.decoding.evict ? 1 : 0)) from.fail(fmt::format("a lane may have {} entries", most));
    if (!method.evicts() && !is_whole_lane(spec, lanes.length(h), head.seen)) {
      from.fail(fmt::format("a lane has {} entries, {} keeps all {}", lanes.length(h), method.name, head.seen));
    }
    if (method.one_set_per_layer && (lanes.length(h) != lanes.length(0) || most != limit[0])) {
      from.fail(fmt::format("lanes of a layer have {} and {} entries, {} keeps one set", lanes.length(0),
                            lanes.length(h), method.name));
    }
  }
}

std::vector<float> read_logits(ByteCursor from, int vocabulary) {
  if (from.left() == 0) return {};
  std::vector<float> logits(vocabulary);
  from.read(std::span<float>(logits), "the logits");
  from.finish("the logits");
  return logits;
}

std::vector<SavedHeads> heads_of(const model::Hparams& hparams) {
  std::vector<SavedHeads> heads;
  for (int layer = 0; layer < hparams.n_layer; ++layer) {
    const auto& spec = hparams.layer(layer);
    heads.push_back({spec.n_head_kv, spec.group(), spec.head_dim});
  }
  const bool uniform = std::all_of(heads.begin(), heads.end(), [&](const auto& h) { return h == heads.front(); });
  if (uniform) heads.resize(1);
  return heads;
}

std::string layer_name(int layer) { return fmt::format("layer {}", layer); }

}  // namespace

ModelIdentity identity_of(const model::Hparams& hparams, std::uint64_t file_hash) {
  Hasher rope;
  for (const auto& kind : hparams.kinds) {
    rope.add(std::as_bytes(std::span(kind.rope.frequency)));
    rope.add(std::as_bytes(std::span(&kind.rope.magnitude, 1)));
  }
  return {hparams.name, hparams.arch, file_hash, rope.value(), hparams.n_layer, heads_of(hparams), hparams.n_vocab};
}

void check_model(const ModelIdentity& saved, const ModelIdentity& model, const std::string& what) {
  if (saved == model) return;
  const auto name = [](const ModelIdentity& m) {
    return fmt::format("{} ({}, hash {:016x})", m.name.empty() ? "unnamed" : m.name, m.arch, m.file);
  };
  if (saved.file != model.file)
    throw InputError(fmt::format("{} was saved with the model {}, which is not {}", what, name(saved), name(model)));
  if (saved.rope != model.rope) {
    throw InputError(fmt::format(
        "{} was saved with other RoPE frequencies of the model {} (hash {:016x}, now {:016x}): give the same options",
        what, name(model), saved.rope, model.rope));
  }
  throw InputError(fmt::format("{} is damaged: it has another shape than its model {}", what, name(model)));
}

void SavedHead::write(ByteSink& to) const {
  put(to, std::string_view(options.spec.print()));
  put(to, std::string_view(spec_full));
  put(to, std::string_view(options.budget ? options.budget->print() : ""));
  put(to, static_cast<std::uint32_t>(options.kv_type.key));
  put(to, static_cast<std::uint32_t>(options.kv_type.value));
  write_model(to, model);
  put(to, seen);
  for (const auto number :
       {terms.prompt.tokens, terms.prompt.group, terms.budget, terms.always_kept.sinks, terms.always_kept.recent})
    put(to, number);
  for (const auto& layer : limit) put(to, std::span<const int>(layer));
  write_transcript(to, transcript);
}

SavedHead SavedHead::read(ByteCursor& from, int sections) {
  SavedHead head;
  head.options = read_options(from, head.spec_full);
  head.model = read_model(from);
  if (sections < 2 || head.model.layers != sections - 2)
    from.fail(fmt::format("it has {} sections for {} layers", sections, head.model.layers));
  head.seen = from.take<std::int32_t>("the number of tokens");
  if (head.seen < 1 || head.seen > kMostTokens)
    from.fail(fmt::format("{} tokens have been seen, expected 1 to {}", head.seen, kMostTokens));
  head.terms = read_terms(from);
  head.terms.prompt.head_dim = head.model.of_layer(0).head_dim;
  for (int layer = 0; layer < head.model.layers; ++layer) {
    const auto heads = as_size(head.model.of_layer(layer).kv_heads);
    if (heads > from.left() / sizeof(std::int32_t))
      from.fail(fmt::format("its head has no room for the limits of {} KV heads of layer {}", heads, layer));
    from.read(std::span<int>(head.limit.emplace_back(heads)), "a layer's limits");
  }
  head.transcript = read_transcript(from, head.seen, head.model.vocabulary);
  from.finish("the head");
  return head;
}

void write_sequence(ByteSink& to, const Cache::Impl& cache, const ModelIdentity& model, std::span<const float> logits,
                    const Transcript& transcript) {
  MemorySink head;
  SavedHead{cache.options, cache.options.spec.print_full(), model, cache.seen, cache.terms.front(), cache.limit,
            transcript}
      .write(head);
  const int summaries = summaries_of(cache.method(), cache.seen);
  std::vector<std::size_t> lengths{head.bytes().size()};
  for (int layer = 0; layer < cache.lanes.layers(); ++layer)
    lengths.push_back(cache::saved_bytes(cache.lanes.layer(layer), summaries));
  lengths.push_back(logits.size_bytes());

  cache::SectionWriter writer(to, kSavedFormat, lengths);
  writer.section([&](ByteSink& sink) { sink.write(head.bytes()); });
  for (int layer = 0; layer < cache.lanes.layers(); ++layer)
    writer.section([&](ByteSink& sink) { cache::save(cache.lanes.layer(layer), sink, summaries); });
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
  check_terms(head, hparams, contents);

  cache::LaneSet lanes = empty_lanes(head.options, hparams, account);
  for (int layer = 0; layer < hparams.n_layer; ++layer) {
    reader.verify(layer_section(layer), layer_name(layer));
    ByteCursor section = reader.section(layer_section(layer));
    cache::load(lanes.layer(layer), section, head.seen, summaries_of(head.options.spec.method(), head.seen));
    check_layer(hparams.layer(layer), lanes.layer(layer), head.limit[layer], head, section);
  }
  const int last = reader.count() - 1;
  reader.verify(last, "its logits");
  auto logits = read_logits(reader.section(last), hparams.n_vocab);
  auto terms = terms_of(head.options, hparams, head.terms.prompt.tokens);
  auto sequence = std::make_unique<Cache::Impl>(Cache::Impl{head.options, &hparams, &account, std::move(lanes),
                                                            head.seen, std::move(terms), std::move(head.limit)});
  return {Cache(std::move(sequence)), std::move(logits), std::move(head.transcript)};
}

}  // namespace winnow::engine
