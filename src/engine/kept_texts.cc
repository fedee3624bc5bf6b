// SPDX-License-Identifier: Apache-2.0
#include "engine/kept_texts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "base/format.h"
#include "base/log.h"
#include "engine/known_text.h"
#include "engine/model_impl.h"
#include "engine/text_fetch.h"
#include "store/values.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

/// The share of the memory that may be queued for writing is 1 / kQueuedShare.
constexpr std::size_t kQueuedShare = 4;
/// How long a thread waits for stored texts before it looks whether it should stop.
constexpr std::chrono::milliseconds kFetchWait(5);

std::unique_ptr<TextTier> open_tier(const Session::Impl& session, const TextOptions& options) {
  if (options.place.empty()) return nullptr;
  if (options.memory == 0)
    throw UsageError(
        "texts can only be stored in a folder or on a server if they also have memory, but their memory is 0 bytes");
  return std::make_unique<TextTier>(store::open_values({options.place, "texts"}, options.place_size), key_of(session),
                                    options.memory / kQueuedShare);
}

bool has_experts(const model::Hparams& hparams) {
  return std::ranges::any_of(hparams.kinds, [](const model::LayerSpec& kind) { return kind.n_expert > 0; });
}

/// Why the session cannot put stored keys and values in place of reading; empty: it can.
std::string why_texts_are_read(const Session::Impl& session) {
  if (has_experts(session.hparams)) return "the model has experts";
  if (session.model->impl().weights->device() != nullptr) return "the model is on a device";
  if (session.options.chunk % TextBlock::kTokens == 0) return {};
  return fmt::format("a chunk of {} tokens is no multiple of {}", session.options.chunk, TextBlock::kTokens);
}

/// Brings stored blocks of a text and states after them into memory. Returns the number of blocks that are stored
/// anywhere, as far as is known.
std::size_t fetch(Session::Impl& session, const StoredPart& part, std::span<const Token> text,
                  const PassLimits& limits) {
  const auto tiers = session.texts->tiers();
  if (tiers.tier == nullptr) return 0;
  TextFetch fetch(session, tiers, part, text, limits);
  while (fetch.advance()) {
    session.check_stop();
    tiers.tier->wait(kFetchWait);
  }
  return fetch.shared();
}

}  // namespace

KeptTexts::KeptTexts(const Session::Impl& session, const TextOptions& options)
    : memory_(options.memory), tier_(open_tier(session, options)), type_(options.type) {
  if (const auto why = why_texts_are_read(session); options.memory > 0 && !why.empty())
    log().info("texts are not kept for later prompts, because {}", why);
}

void KeptTexts::check_room(int tokens, std::size_t bytes) {
  const std::size_t room = std::max(memory_.memory(), tier_ == nullptr ? 0 : tier_->room_for_parts());
  if (bytes <= room || std::exchange(has_told_, true)) return;
  log().info(
      "{} tokens have {} of keys and values, and {} are kept for later prompts: the last of these tokens will be read "
      "again",
      tokens, format_bytes(bytes), format_bytes(room));
}

bool can_know_texts(const Session::Impl& session) { return why_texts_are_read(session).empty(); }

/// At least the last token passes, for its logits. Without packed weights, at least a block passes, because ggml's
/// kernels for few rows give other bits than those for many.
StoredPart stored_part(const network::Pass& pass, const ReadingPlan& plan, TextType type, std::string_view salt) {
  const bool is_packed = pass.room() != nullptr && pass.room()->set;
  const auto computed = plan.first().scratch_type();
  const auto stored = type == TextType::exact ? computed : ElementType::q8_0;
  return {fmt::format("{} {} {} {}", static_cast<int>(computed), static_cast<int>(stored), is_packed, salt),
          KnownText::most(plan.first().text(), is_packed ? 1 : TextBlock::kTokens), stored};
}

std::vector<Prefilled> read_prompts(Session::Impl& session, const ReadingSizes& sizes, const ReadingInput& input,
                                    std::span<const CacheOptions> caches) {
  ReadingPlan plan(session, sizes, caches);
  if (session.texts == nullptr || !can_know_texts(session) || sizes.text < TextBlock::kTokens)
    return PromptReading(session, std::move(plan), input).run();
  const auto pass = session.begin_pass(as_size(plan.first().prompt_rows()), plan.bytes().all());
  const auto tiers = session.texts->tiers();
  const auto part = stored_part(pass, plan, tiers.type, "");
  session.texts->check_room(sizes.text,
                            as_size(sizes.text / TextBlock::kTokens) * TextBlock::bytes(session.hparams, part.type));
  const PassLimits limits{plan.first_seen(session), [&](int rows) { return plan.states(session, rows); }};
  const std::size_t shared = fetch(session, part, input.text, limits);
  while (true) {
    KnownText known(session, tiers, part, input.text, shared, limits);
    ReadingSizes rest = sizes;
    rest.known = known.tokens();
    ReadingInput with = input;
    with.known = &known;
    try {
      auto out = PromptReading(session, ReadingPlan(session, rest, caches), with).run();
      for (auto& prompt : out) prompt.cached_tokens = rest.known;
      return out;
    } catch (const TextLost& error) {
      log().warn("{}", error.what());  // less is known now
    }
  }
}

}  // namespace winnow::engine
