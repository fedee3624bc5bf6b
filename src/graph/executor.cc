#include "graph/executor.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <cstring>
#include <utility>
#include <vector>

#include "base/format.h"
#include "graph/block.h"
#include "winnow/error.h"

namespace winnow::graph {

namespace {

constexpr int kNodesPerLayer = 48;  // a block has about 30
constexpr int kNodesAround = 16;

struct ThreadpoolFree {
  void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
};

/// A graph with the memory of its intermediate results, counted. A graph for the same rows is kept from call to call.
class Plan {
 public:
  Plan(MemoryAccount& account, int layers)
      : account_(account),
        nodes_(static_cast<std::size_t>(layers) * kNodesPerLayer + kNodesAround),
        metadata_(nodes_ * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes_, false)),
        allocator_(ggml_gallocr_new(ggml_backend_cpu_buffer_type())),
        holes_(static_cast<std::size_t>(layers)) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() { account_.remove(counted_); }

  /// Begins a new graph.
  ggml_context* begin() {
    rows_ = 0;
    context_.reset(ggml_init({metadata_.size(), metadata_.data(), true}));
    graph_ = ggml_new_graph_custom(context_.get(), nodes_, false);
    inputs_.clear();
    return context_.get();
  }
  /// A tensor over memory of the caller's.
  ggml_tensor* wrap(ggml_type type, std::int64_t columns, std::int64_t rows, void* data) {
    ggml_tensor* const tensor = ggml_new_tensor_2d(context_.get(), type, columns, rows);
    inputs_.emplace_back(ggml_backend_cpu_buffer_from_ptr(data, ggml_nbytes(tensor)));
    ggml_backend_tensor_alloc(inputs_.back().get(), tensor, data);
    return tensor;
  }
  Hole& hole(int layer, AttentionOp* const* attention) {
    auto& hole = holes_[static_cast<std::size_t>(layer)];
    hole.attention = attention;
    return hole;
  }
  /// Ends the graph and gives its nodes memory. Throws MemoryError; then there is no graph.
  void finish(ggml_tensor* result, int rows) {
    result_ = result;
    ggml_build_forward_expand(graph_, result);
    if (rows > reserved_rows_) reserve(rows);
    const bool done = ggml_gallocr_alloc_graph(allocator_.get(), graph_);  // takes more where this layer differs from the one reserved for
    count();
    if (!done) throw MemoryError(fmt::format("cannot allocate the work space of {} rows", rows), 0);
    rows_ = rows;
  }

  /// Rows of the graph that is ready to run; 0: none is.
  int rows() const { return rows_; }
  ggml_cgraph* graph() const { return graph_; }
  const float* result() const { return static_cast<const float*>(result_->data); }

 private:
  /// Asks for the size first: memory that is not there must be refused, not taken, since Linux would hand it out and kill later.
  void reserve(int rows) {
    reserved_rows_ = 0;
    std::size_t bytes = 0;
    ggml_gallocr_reserve_n_size(allocator_.get(), graph_, nullptr, nullptr, &bytes);  // gives a smaller buffer back
    count();
    if (bytes > available_memory() || !ggml_gallocr_reserve(allocator_.get(), graph_)) {
      throw MemoryError(fmt::format("cannot allocate {} for the work space of {} rows ({} available)", format_bytes(bytes), rows,
                                    format_bytes(available_memory())),
                        bytes);
    }
    reserved_rows_ = rows;
  }

  void count() {
    account_.remove(std::exchange(counted_, ggml_gallocr_get_buffer_size(allocator_.get(), 0)));
    account_.add(counted_);
  }

  MemoryAccount& account_;
  std::size_t nodes_;
  std::vector<std::byte> metadata_;
  ggml_context_ptr context_;
  ggml_gallocr_ptr allocator_;
  ggml_cgraph* graph_ = nullptr;
  std::vector<ggml_backend_buffer_ptr> inputs_;
  std::vector<Hole> holes_;
  ggml_tensor* result_ = nullptr;
  int rows_ = 0;
  int reserved_rows_ = 0;  ///< a graph of so many rows fits what is allocated
  std::size_t counted_ = 0;
};

}  // namespace

struct Executor::Impl {
  Impl(const model::Weights& w, int n, MemoryAccount& a)
      : weights(w), threads(n), account(a), layer_plan(a, 1), projection_plan(a, 1), output_plan(a, 1), step_plan(a, w.hparams().n_layer) {
    ggml_cpu_init();
    auto params = ggml_threadpool_params_default(n);
    pool.reset(ggml_threadpool_new(&params));
    if (pool == nullptr) throw MemoryError(fmt::format("cannot start {} threads", n), 0);
  }

  void compute(const Plan& plan) {
    auto run = ggml_graph_plan(plan.graph(), threads, pool.get());
    if (products.size() < run.work_size) {
      products = Buffer();  // first the old one
      products = Buffer(account, run.work_size, "the work space of matrix products");
    }
    run.work_data = reinterpret_cast<std::uint8_t*>(products.data());
    if (stop) run.abort_callback = [](void* impl) { return static_cast<Impl*>(impl)->stop(); };
    run.abort_callback_data = this;
    const auto status = ggml_graph_compute(plan.graph(), &run);
    if (status == GGML_STATUS_ABORTED) throw Interrupted("interrupted");
    if (status != GGML_STATUS_SUCCESS) throw MemoryError("cannot allocate what a matrix product needs", 0);
  }

  void set_positions(std::span<const std::int32_t> values) {
    if (positions.size() < values.size_bytes()) positions = Buffer(account, values.size_bytes(), "positions");
    std::memcpy(positions.data(), values.data(), values.size_bytes());
  }

  void embed(std::span<const std::int32_t> tokens, float* out) const {
    const auto& h = weights.hparams();
    const ggml_tensor* const table = weights.token_embedding();
    const auto to_float = ggml_get_type_traits(table->type)->to_float;
    for (const auto token : tokens) {
      const auto* const row = static_cast<const std::byte*>(table->data) + static_cast<std::size_t>(token) * table->nb[1];
      if (to_float == nullptr) {
        std::memcpy(out, row, static_cast<std::size_t>(h.n_embd) * sizeof(float));
      } else {
        to_float(row, out, h.n_embd);
      }
      for (int i = 0; i < h.n_embd; ++i) out[i] *= h.embedding_scale;
      out += h.n_embd;
    }
  }

  /// A graph whose result is the logits of the last `wanted` rows.
  void build_step(int rows, int wanted) {
    const auto& h = weights.hparams();
    const auto n = static_cast<std::size_t>(rows);
    if (hidden.size() < n * static_cast<std::size_t>(h.n_embd) * sizeof(float)) {
      hidden = Buffer(account, n * static_cast<std::size_t>(h.n_embd) * sizeof(float), "the hidden states of a step");
    }
    if (positions.size() < n * sizeof(std::int32_t)) positions = Buffer(account, n * sizeof(std::int32_t), "positions");
    step_positions = positions.data();
    ggml_context* const context = step_plan.begin();
    ggml_tensor* x = step_plan.wrap(GGML_TYPE_F32, h.n_embd, rows, hidden.data());
    ggml_tensor* const p = step_plan.wrap(GGML_TYPE_I32, rows, 1, positions.data());
    for (int layer = 0; layer < h.n_layer; ++layer) x = add_block(context, weights, layer, x, p, step_plan.hole(layer, &attention));
    step_wanted = wanted;
    if (wanted == 0) return step_plan.finish(x, rows);
    if (wanted < rows) x = ggml_view_2d(context, x, h.n_embd, wanted, x->nb[1], static_cast<std::size_t>(rows - wanted) * x->nb[1]);
    step_plan.finish(add_output(context, weights, x), rows);
  }

  const model::Weights& weights;
  int threads;
  MemoryAccount& account;
  std::unique_ptr<ggml_threadpool, ThreadpoolFree> pool;
  Buffer products;  ///< rows that ggml has rounded to the weights' partner type
  Buffer positions;
  const std::byte* step_positions = nullptr;  ///< where the kept step graph reads them
  int step_wanted = 0;                        ///< rows whose logits it gives
  Buffer hidden;                              ///< of a step
  AttentionOp* attention = nullptr;
  std::function<bool()> stop;
  Plan layer_plan;
  Plan projection_plan;
  Plan output_plan;
  Plan step_plan;
};

Executor::Executor(const model::Weights& weights, int threads, MemoryAccount& account)
    : impl_(std::make_unique<Impl>(weights, threads, account)) {}
Executor::~Executor() = default;

int Executor::threads() const { return impl_->threads; }

void Executor::embed(std::span<const std::int32_t> tokens, float* hidden) { impl_->embed(tokens, hidden); }

void Executor::run_layer(int layer, float* hidden, std::span<const std::int32_t> positions, AttentionOp& attention) {
  auto& s = *impl_;
  s.attention = &attention;
  s.set_positions(positions);
  const int rows = static_cast<int>(positions.size());
  ggml_context* const context = s.layer_plan.begin();
  ggml_tensor* const x = s.layer_plan.wrap(GGML_TYPE_F32, s.weights.hparams().n_embd, rows, hidden);
  ggml_tensor* const p = s.layer_plan.wrap(GGML_TYPE_I32, rows, 1, s.positions.data());
  s.layer_plan.finish(add_block(context, s.weights, layer, x, p, s.layer_plan.hole(0, &s.attention)), rows);
  s.compute(s.layer_plan);
}

void Executor::keys_and_values(int layer, const float* hidden, std::span<const std::int32_t> positions, float* keys, float* values) {
  auto& s = *impl_;
  s.set_positions(positions);
  const auto& h = s.weights.hparams();
  const int rows = static_cast<int>(positions.size());
  ggml_context* const context = s.projection_plan.begin();
  ggml_tensor* const x = s.projection_plan.wrap(GGML_TYPE_F32, h.n_embd, rows, const_cast<float*>(hidden));
  ggml_tensor* const p = s.projection_plan.wrap(GGML_TYPE_I32, rows, 1, s.positions.data());
  s.projection_plan.finish(add_keys_and_values(context, s.weights, layer, x, p), rows);
  s.compute(s.projection_plan);
  const auto width = static_cast<std::size_t>(h.n_head_kv) * static_cast<std::size_t>(h.head_dim);
  const float* from = s.projection_plan.result();
  for (int row = 0; row < rows; ++row, from += 2 * width) {
    std::memcpy(keys + static_cast<std::size_t>(row) * width, from, width * sizeof(float));
    std::memcpy(values + static_cast<std::size_t>(row) * width, from + width, width * sizeof(float));
  }
}

void Executor::step(std::span<const std::int32_t> tokens, std::span<const std::int32_t> positions, AttentionOp& attention,
                    std::span<float> logits) {
  auto& s = *impl_;
  const int rows = static_cast<int>(tokens.size());
  const int wanted = static_cast<int>(logits.size()) / s.weights.hparams().n_vocab;
  if (s.step_plan.rows() != rows || s.step_wanted != wanted || s.step_positions != s.positions.data()) s.build_step(rows, wanted);
  s.attention = &attention;
  s.set_positions(positions);
  s.embed(tokens, s.hidden.as<float>().data());
  s.compute(s.step_plan);
  if (!logits.empty()) std::memcpy(logits.data(), s.step_plan.result(), logits.size_bytes());
}

void Executor::logits(const float* hidden, int n, float* logits) {
  auto& s = *impl_;
  ggml_context* const context = s.output_plan.begin();
  ggml_tensor* const x = s.output_plan.wrap(GGML_TYPE_F32, s.weights.hparams().n_embd, n, const_cast<float*>(hidden));
  s.output_plan.finish(add_output(context, s.weights, x), n);
  s.compute(s.output_plan);
  std::memcpy(logits, s.output_plan.result(),
              static_cast<std::size_t>(n) * static_cast<std::size_t>(s.weights.hparams().n_vocab) * sizeof(float));
}

void Executor::set_stop(std::function<bool()> stop) { impl_->stop = std::move(stop); }

}  // namespace winnow::graph
