#include "multi/ingest.h"

#include "engine/model_impl.h"
#include "engine/session_impl.h"

namespace winnow::multi {

Ingested ingest(Session& session, const DocumentText& text, const CacheOptions& options) {
  Ingested out{std::move(session.prefill(text.tokens, std::span(&options, 1)).caches.front()), {}};
  const auto& s = session.impl();
  const auto& cache = out.cache.impl();
  out.head.saved = {options,
                    options.spec.print_full(),
                    engine::identity_of(s.hparams, s.model->hash()),
                    cache.seen,
                    cache.terms,
                    cache.limit,
                    {Conversation{text.text, {}, "", PromptFormat::raw, text.control}, text.tokens}};
  return out;
}

}  // namespace winnow::multi
