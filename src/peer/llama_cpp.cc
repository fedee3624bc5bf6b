#include "peer/llama_cpp.h"

#include <ggml-cpu.h>
#include <llama.h>

#include <algorithm>

#include "winnow/error.h"

namespace winnow::peer {

namespace {

ggml_type ggml_type_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return GGML_TYPE_F32;
    case ElementType::f16:
      return GGML_TYPE_F16;
    case ElementType::bf16:
      return GGML_TYPE_BF16;
    case ElementType::q8_0:
      return GGML_TYPE_Q8_0;
    case ElementType::q4_0:
      break;
  }
  return GGML_TYPE_Q4_0;
}

}  // namespace

void Llama::Free::operator()(llama_model* model) const { llama_model_free(model); }
void Llama::Free::operator()(llama_context* context) const { llama_free(context); }
void Llama::Free::operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }

Llama::Llama(const std::string& path, const LlamaOptions& options) : options_(options) {
  model_.reset(llama_model_load_from_file(path.c_str(), llama_model_default_params()));
  if (model_ == nullptr) throw ModelError(path + ": libllama cannot load it");
  auto params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(options.context);
  params.n_batch = static_cast<std::uint32_t>(std::max(2048, options.ubatch));
  params.n_ubatch = static_cast<std::uint32_t>(options.ubatch);
  params.n_threads = options.threads;
  params.n_threads_batch = options.threads;
  params.flash_attn_type = options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.type_k = params.type_v = ggml_type_of(options.kv_type);
  context_.reset(llama_init_from_model(model_.get(), params));
  auto pool_params = ggml_threadpool_params_default(options.threads);
  pool_.reset(ggml_threadpool_new(&pool_params));
  if (context_ == nullptr || pool_ == nullptr) throw ModelError(path + ": libllama cannot make a context for it");
  llama_attach_threadpool(context_.get(), pool_.get(), pool_.get());
}

Llama::~Llama() = default;

void Llama::clear() { llama_memory_clear(llama_get_memory(context_.get()), true); }

std::vector<float> Llama::decode(std::span<const std::int32_t> tokens) {
  const auto batch = static_cast<std::size_t>(llama_n_batch(context_.get()));
  for (std::size_t done = 0; done < tokens.size(); done += batch) {
    const auto part = tokens.subspan(done, std::min(batch, tokens.size() - done));
    // libllama takes a pointer to non-const and does not write through it.
    if (llama_decode(context_.get(), llama_batch_get_one(const_cast<llama_token*>(part.data()), static_cast<int>(part.size()))) != 0) {
      throw ModelError("libllama cannot decode");
    }
  }
  llama_synchronize(context_.get());
  const float* const logits = llama_get_logits_ith(context_.get(), -1);
  return {logits, logits + llama_vocab_n_tokens(llama_model_get_vocab(model_.get()))};
}

}  // namespace winnow::peer
