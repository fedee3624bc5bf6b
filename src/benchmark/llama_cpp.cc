// SPDX-License-Identifier: Apache-2.0
#include "benchmark/llama_cpp.h"

#include <ggml-cpu.h>
#include <llama.h>

#include <algorithm>
#include <array>

#include "base/as_size.h"
#include "device/backend_log.h"
#include "winnow/error.h"

namespace winnow::benchmark {

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

llama_flash_attn_type flash_type_of(FlashAttention flash_attention) {
  switch (flash_attention) {
    case FlashAttention::off:
      return LLAMA_FLASH_ATTN_TYPE_DISABLED;
    case FlashAttention::on:
      return LLAMA_FLASH_ATTN_TYPE_ENABLED;
    case FlashAttention::automatic:
      break;
  }
  return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

llama_context_params params_of(const LlamaOptions& options) {
  auto params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(options.context);
  params.n_seq_max = static_cast<std::uint32_t>(options.sequences);
  params.n_batch = static_cast<std::uint32_t>(std::max(options.batch, options.ubatch));
  params.n_ubatch = static_cast<std::uint32_t>(options.ubatch);
  params.n_threads = options.threads;
  params.n_threads_batch = options.threads;
  params.flash_attn_type = flash_type_of(options.flash_attention);
  params.type_k = params.type_v = ggml_type_of(options.kv_type);
  params.kv_unified = options.kv_buffers == KvBuffers::one;
  params.swa_full = options.window_cache == WindowCache::full_size;
  return params;
}

}  // namespace

void Llama::Free::operator()(llama_context* context) const { llama_free(context); }
void Llama::Free::operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
void Llama::Free::operator()(llama_batch* batch) const {
  llama_batch_free(*batch);
  delete batch;
}

std::shared_ptr<llama_model> Llama::load(const std::string& path, const device::Device* device) {
  device::forward_backend_log();
  std::array<ggml_backend_dev_t, 2> devices{device == nullptr ? nullptr : device->of_ggml(), nullptr};
  auto params = llama_model_default_params();
  params.devices = devices.data();  // by default libllama takes all GPUs
  std::shared_ptr<llama_model> out(llama_model_load_from_file(path.c_str(), params), llama_model_free);
  if (out == nullptr) throw ModelError(path + ": libllama cannot load it");
  return out;
}

Llama::Llama(std::shared_ptr<llama_model> model, const LlamaOptions& options) : model_(std::move(model)) {
  context_.reset(llama_init_from_model(model_.get(), params_of(options)));
  auto pool_params = ggml_threadpool_params_default(options.threads);
  pool_.reset(ggml_threadpool_new(&pool_params));
  if (context_ == nullptr || pool_ == nullptr)
    throw ModelError("libllama cannot make a context of " + std::to_string(options.context) + " tokens");
  llama_attach_threadpool(context_.get(), pool_.get(), pool_.get());
  constexpr int kTokensNotEmbeddings = 0;
  constexpr int kSequencesOfAToken = 1;
  batch_.reset(new llama_batch(
      llama_batch_init(static_cast<int>(llama_n_batch(context_.get())), kTokensNotEmbeddings, kSequencesOfAToken)));
  vocabulary_ = as_size(llama_vocab_n_tokens(llama_model_get_vocab(model_.get())));
}

Llama::~Llama() = default;

void Llama::clear() { llama_memory_clear(llama_get_memory(context_.get()), true); }

int Llama::length(int sequence) const {
  return llama_memory_seq_pos_max(llama_get_memory(context_.get()), sequence) + 1;
}

void Llama::add(Token token, int position, int sequence, bool output) {
  auto& b = *batch_;
  b.token[b.n_tokens] = token;
  b.pos[b.n_tokens] = position;
  b.n_seq_id[b.n_tokens] = 1;
  b.seq_id[b.n_tokens][0] = sequence;
  b.logits[b.n_tokens] = output ? 1 : 0;
  ++b.n_tokens;
}

void Llama::compute() {
  const int status = llama_decode(context_.get(), *batch_);
  batch_->n_tokens = 0;
  if (status != 0) throw Error("libllama cannot decode: llama_decode returned " + std::to_string(status));
  llama_synchronize(context_.get());
}

void Llama::run(std::span<const Token> tokens, int sequence, Output output) {
  int position = length(sequence);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool last = i + 1 == tokens.size();
    add(tokens[i], position++, sequence, output == Output::all || (output == Output::last && last));
  }
  compute();
}

std::vector<float> Llama::decode(std::span<const Token> tokens, int sequence) {
  const auto at_once = as_size(llama_n_batch(context_.get()));
  for (std::size_t done = 0; done < tokens.size(); done += at_once) {
    const auto part = tokens.subspan(done, std::min(at_once, tokens.size() - done));
    run(part, sequence, done + part.size() == tokens.size() ? Output::last : Output::none);
  }
  const float* const logits = llama_get_logits_ith(context_.get(), -1);
  return {logits, logits + vocabulary_};
}

std::vector<float> Llama::decode_all(std::span<const Token> tokens, int sequence) {
  std::vector<float> out;
  const auto at_once = as_size(llama_n_batch(context_.get()));
  for (std::size_t done = 0; done < tokens.size(); done += at_once) {
    const auto part = tokens.subspan(done, std::min(at_once, tokens.size() - done));
    run(part, sequence, Output::all);
    const float* const logits = llama_get_logits(context_.get());
    out.insert(out.end(), logits, logits + part.size() * vocabulary_);
  }
  return out;
}

std::vector<float> Llama::step(std::span<const Token> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const int sequence = static_cast<int>(i);
    add(tokens[i], length(sequence), sequence, true);
  }
  compute();
  const float* const logits = llama_get_logits(context_.get());
  return {logits, logits + tokens.size() * vocabulary_};
}

void Llama::truncate(int sequence, int tokens) {
  if (!llama_memory_seq_rm(llama_get_memory(context_.get()), sequence, tokens, -1))
    throw Error("libllama cannot shorten the sequence");
}

void Llama::copy(int from, int to) {
  auto* const memory = llama_get_memory(context_.get());
  llama_memory_seq_rm(memory, to, 0, -1);
  llama_memory_seq_cp(memory, from, to, 0, -1);
}

}  // namespace winnow::benchmark
