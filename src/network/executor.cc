// SPDX-License-Identifier: Apache-2.0
#include "network/executor.h"

#include <ggml-cpu.h>
#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/as_size.h"
#include "network/compute_graph.h"
#include "network/finite.h"
#include "network/head_outputs.h"
#include "network/host_nodes.h"
#include "network/layer_graph.h"
#include "network/mixture.h"
#include "network/one_expert.h"
#include "network/routing.h"
#include "network/single_rows.h"
#include "network/team.h"
#include "winnow/error.h"

namespace winnow::network {

namespace {

struct ThreadpoolFree {
  void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
};

}  // namespace

struct Executor::Impl {
  Impl(const model::Weights& w, int n, MemoryAccount& a, Packing packing)
      : weights(w),
        threads(n),
        account(a),
        kernels(a, n),
        packs(w, a, n, packing, [this](const auto& work) { run_team(work); }),
        on_host(a),
        layer_graph(a, kernels, 1, w.device(), nodes_of_routing(w)),
        expert_graph(a, kernels, 1),
        projection_graph(a, kernels, 1, w.device()),
        lengths_graph(a, kernels, HeadOutputs::layers_of_graph(w.hparams())),
        output_graph(a, kernels, 1, w.device()),
        step_graph(a, kernels, w.hparams().n_layer, w.device(), nodes_of_routing(w)),
        team_graph(a, kernels, 0) {
    check_team(n);
    ggml_cpu_init();
    auto params = ggml_threadpool_params_default(n);
    params.poll = kPoll;
    pool.reset(ggml_threadpool_new(&params));
    if (pool == nullptr) throw MemoryError(fmt::format("cannot start {} threads", n), 0);
    packs.begin(available_memory());
  }

  /// Nodes by which a layer with experts is larger on a device.
  static int nodes_of_routing(const model::Weights& w) {
    int most = 0;
    for (const auto& kind : w.hparams().kinds) most = std::max(most, kind.n_expert_used);
    return w.device() == nullptr || most == 0 ? 0 : routing_nodes(most);
  }

  /// Threads poll for some milliseconds for the next graph. Below the default level, the ggml built by get-deps.sh also
  /// sleeps at barriers.
  static constexpr std::uint32_t kPoll = 1;

  /// The plan of a graph for the CPU, with its work space.
  ggml_cplan plan(ggml_cgraph* graph) {
    auto run = ggml_graph_plan(graph, threads, pool.get());
    if (products.size() < run.work_size) {
      products = Buffer();  // frees the old one first
      products = Buffer(account, run.work_size, "the work space of matrix products");
    }
    run.work_data = reinterpret_cast<std::uint8_t*>(products.data());
    return run;
  }

  /// Allocates what a graph needs besides its results. Throws MemoryError.
  void reserve_work_space(const ComputeGraph& graph) {
    if (graph.device() == nullptr) {
      plan(graph.graph());
    } else {
      on_host.reserve(graph.graph());
    }
  }

  void compute_on_host(ggml_cgraph* graph) {
    auto run = plan(graph);
    if (stop) run.abort_callback = [](void* impl) { return static_cast<Impl*>(impl)->stop(); };
    run.abort_callback_data = this;
    const auto status = ggml_graph_compute(graph, &run);
    if (status == GGML_STATUS_ABORTED) throw Interrupted("interrupted");
    if (status != GGML_STATUS_SUCCESS) throw MemoryError("cannot allocate the buffers of a matrix product", 0);
    kernels.rethrow();
  }

  /// Custom nodes are left to the host, unless attention can do its work on the device. Throws MemoryError.
  void compute_on_device(const ComputeGraph& of, device::Device& device) {
    on_host.reserve(of.graph());
    of.copy_inputs();
    const auto slots = of.slots();
    if (!slots.empty()) attention->begin_on_device(slots);
    queue_parts(of, device);
    if (slots.empty()) return;
    if (const auto bad = attention->end_on_device()) finite.found(*bad);
  }

  /// Waits for the parts, also if one fails.
  void queue_parts(const ComputeGraph& of, device::Device& device) {
    struct Wait {
      device::Device& queued;
      ~Wait() { queued.synchronize(); }
    } const wait{device};
    ggml_cgraph* const graph = of.graph();
    for_each_part(graph, [&](int first, int end) {
      if (stop && stop()) throw Interrupted("interrupted");
      const auto* const node = ggml_graph_node(graph, first);
      if (!HostNodes::is_custom(*node)) return device.compute(graph, first, end);
      if (const auto* const slot = of.slot_at(node); slot != nullptr && attend_on_device(*slot)) return;
      device.synchronize();
      compute_on_host(on_host.copy(graph, first, end));
      on_host.write();
    });
  }

  void compute(const ComputeGraph& graph) {
    finite.begin();
    if (graph.device() == nullptr) {
      compute_on_host(graph.graph());
    } else {
      compute_on_device(graph, *graph.device());
    }
    if (finite.first() != FiniteCheck::kNone) throw not_finite(weights, finite.first());
  }

  void check_logits(std::span<const float> logits) const {
    if (!all_finite(logits)) throw not_finite(weights, weights.hparams().n_layer);
  }

  /// Calls a function once on every thread of the pool.
  void run_team(const std::function<void(Worker)>& work) {
    const auto call = [](ggml_tensor*, int index, int count, void* function) {
      (*static_cast<const std::function<void(Worker)>*>(function))(Worker{index, count});
    };
    ggml_context* const context = team_graph.begin();
    team_graph.finish(ggml_custom_4d(context, GGML_TYPE_F32, 1, 1, 1, 1, nullptr, 0, call, GGML_N_TASKS_MAX,
                                     const_cast<std::function<void(Worker)>*>(&work)),
                      1);
    compute(team_graph);
  }

  /// By which queries are multiplied, the same in all layers.
  const model::Temperature& temperature() const { return weights.hparams().layer(0).temperature; }

  void make_room_for_positions(std::size_t rows) {
    const std::size_t bytes = rows * sizeof(std::int32_t);
    if (positions.size() >= bytes) return;
    positions = Buffer(account, bytes, "positions");
    if (temperature().slope != 0) temperatures = Buffer(account, rows * sizeof(float), "temperatures of queries");
  }

  void set_positions(std::span<const std::int32_t> values) {
    make_room_for_positions(values.size());
    std::memcpy(positions.data(), values.data(), values.size_bytes());
    if (temperature().slope != 0)
      std::ranges::transform(values, temperatures.as<float>().begin(), [&](auto at) { return temperature().at(at); });
  }

  /// Null without temperatures.
  ggml_tensor* temperatures_of(ComputeGraph& graph, ggml_context* context, int rows) {
    if (temperature().slope == 0) return nullptr;
    return ggml_reshape_3d(context, graph.wrap(GGML_TYPE_F32, 1, rows, temperatures.data()), 1, 1, rows);
  }

  /// Columns [first, first + count) of the tokens' embeddings, times `scale`.
  struct Columns {
    int first = 0;
    int count = 0;
    float scale = 1;
  };
  static void look_up(const ggml_tensor& table, std::span<const std::int32_t> tokens, const Columns& columns,
                      float* out) {
    const auto to_float = ggml_get_type_traits(table.type)->to_float;
    for (const auto token : tokens) {
      const auto* const row = static_cast<const std::byte*>(table.data) + as_size(token) * table.nb[1] +
                              ggml_row_size(table.type, columns.first);
      if (to_float == nullptr) {
        std::memcpy(out, row, as_size(columns.count) * sizeof(float));
      } else {
        to_float(row, out, columns.count);
      }
      for (int i = 0; i < columns.count; ++i) out[i] *= columns.scale;
      out += columns.count;
    }
  }

  void embed(std::span<const std::int32_t> tokens, float* out) const {
    const auto& h = weights.hparams();
    look_up(*weights.token_embedding(), tokens, {0, h.n_embd, h.embedding_scale}, out);
  }

  void embed(std::span<const std::int32_t> tokens, States& states) const {
    if (!states.is_on_device()) return embed(tokens, states.row(0));
    constexpr std::size_t kRows = 1024;
    const auto width = as_size(weights.hparams().n_embd);
    Buffer buffer(account, std::min(tokens.size(), kRows) * width * sizeof(float), "embeddings for a device");
    for (std::size_t first = 0; first < tokens.size(); first += kRows) {
      const auto some = tokens.subspan(first, std::min(kRows, tokens.size() - first));
      embed(some, buffer.as<float>().data());
      states.write(static_cast<int>(first), buffer.as<float>().first(some.size() * width));
    }
  }

  /// Embeddings of rows for networks with per-layer embeddings: the token embeddings, and those of layers [first, end).
  struct LayerEmbeddings {
    Buffer embedded;  ///< [rows][n_embd]
    Buffer own;       ///< [end - first][rows][n_embd_layer]
  };
  /// Allocates memory for `rows` rows and `layers` layers unless there is enough.
  void make_room(LayerEmbeddings& of, int rows, int layers) {
    const auto& h = weights.hparams();
    if (h.n_embd_layer == 0) return;
    const char* const purpose = "the layers' embeddings";
    const auto bytes = as_size(rows) * as_size(h.n_embd) * sizeof(float);
    if (of.embedded.size() < bytes) of.embedded = Buffer(account, bytes, purpose);
    const auto own = as_size(layers) * as_size(rows) * as_size(h.n_embd_layer) * sizeof(float);
    if (of.own.size() < own) of.own = Buffer(account, own, purpose);
  }
  void fill(LayerEmbeddings& of, std::span<const std::int32_t> tokens, int first, int end) const {
    const auto& h = weights.hparams();
    if (h.n_embd_layer == 0) return;
    embed(tokens, of.embedded.as<float>().data());
    const int n = h.n_embd_layer;
    float* out = of.own.as<float>().data();
    for (int layer = first; layer < end; ++layer, out += tokens.size() * as_size(n))
      look_up(*weights.layer_embedding(), tokens, {layer * n, n, std::sqrt(static_cast<float>(n))}, out);
  }
  /// Adds the embeddings of a layer, which is number `place` in `of.own`, to its rows.
  LayerRows with_embeddings(ComputeGraph& graph, LayerEmbeddings& of, int place, LayerRows rows) const {
    const auto& h = weights.hparams();
    if (h.n_embd_layer == 0) return rows;
    const std::int64_t count = rows.hidden->ne[1];
    float* const own = of.own.as<float>().data() + place * count * h.n_embd_layer;
    rows.embedded = graph.wrap(GGML_TYPE_F32, h.n_embd, count, of.embedded.data());
    rows.own = graph.wrap(GGML_TYPE_F32, h.n_embd_layer, count, own);
    return rows;
  }

  /// Builds the graph of a step, with the logits of the last `wanted` rows as its result.
  void build_step(int rows, int wanted, const Products& products_of_step) {
    const auto& h = weights.hparams();
    ggml_context* const context = step_graph.begin(products_of_step);  // first: the old graph reads the old states
    if (!hidden || hidden->rows() < rows)
      hidden.emplace(account, h, rows, "the hidden states of a step", weights.device());
    make_room_for_positions(as_size(rows));
    step_positions = positions.data();
    ggml_tensor* x = hidden->tensor(context, 0, rows);
    ggml_tensor* const p = step_graph.wrap(GGML_TYPE_I32, rows, 1, positions.data());
    ggml_tensor* const t = temperatures_of(step_graph, context, rows);
    make_room(of_step, rows, h.n_layer);
    for (int layer = 0; layer < h.n_layer; ++layer) {
      const LayerRows in = with_embeddings(step_graph, of_step, layer, {x, p, t});
      x = add_layer(context, step_graph.linear(), weights, layer, in, step_graph.slot(layer, &attention, finite));
    }
    step_wanted = wanted;
    if (wanted == 0) return step_graph.finish(x, rows);
    if (wanted < rows) x = ggml_view_2d(context, x, h.n_embd, wanted, x->nb[1], as_size(rows - wanted) * x->nb[1]);
    step_graph.finish(add_output(context, step_graph.linear(), weights, x), rows);
  }

  /// Rows [first, first + count) of hidden states.
  struct RowsOf {
    int first = 0;
    int count = 0;
  };
  /// Builds the graph of one layer over some rows.
  void build_layer(const Products& of, int layer, const States& states, RowsOf part, Until until) {
    ggml_context* const context = layer_graph.begin(of);
    const int rows = part.count;
    ggml_tensor* const x = states.tensor(context, part.first, rows);
    ggml_tensor* const p = layer_graph.wrap(GGML_TYPE_I32, rows, 1, positions.data());
    ggml_tensor* const t = temperatures_of(layer_graph, context, rows);
    const LayerRows in = with_embeddings(layer_graph, of_rows, 0, {x, p, t});
    AttentionSlot& slot = layer_graph.slot(0, &attention, finite);
    const auto add = until == Until::attention ? add_attention : add_layer;
    layer_graph.finish(add(context, layer_graph.linear(), weights, layer, in, slot), rows);
  }

  /// Reserves work space for `rows` rows of an expert; all experts of a layer have the same shape.
  void reserve_expert(const Pass& pass, int layer, int rows) {
    expert.be(weights, layer, 0);
    ggml_context* const context = expert_graph.begin({.packed = packs.places_of_expert(pass, expert.matrices())});
    ggml_tensor* const x = ggml_new_tensor_2d(context, GGML_TYPE_F32, weights.hparams().n_embd, rows);
    expert_graph.finish(network::expert(context, expert_graph.linear(), weights.hparams(), expert.weights(), x), rows);
    reserve_work_space(expert_graph);
  }

  /// Multiplies the rows of a group by their expert.
  void multiply(const Pass& pass, int layer, ExpertRows& rows, const ExpertRows::Group& group, float* hidden_rows) {
    const auto& h = weights.hparams();
    expert.be(weights, layer, group.expert);
    ggml_context* const context =
        expert_graph.begin({.packed = packs.of_expert(pass, layer, group.expert, expert.matrices(), group.of_expert)});
    ggml_tensor* const y = network::expert(context, expert_graph.linear(), h, expert.weights(), rows.inputs(context));
    expert_graph.finish(rows.add(context, y, hidden_rows, h.residual_scale), group.rows);
    compute(expert_graph);
  }

  /// Weights by which a step's rows are multiplied one by one; null: none.
  const WeightSet* row_by_row_of(Rows whose, int rows) {
    if (whose == Rows::of_one_sequence || rows == 1 || weights.device() != nullptr) return nullptr;
    if (!row_by_row)
      row_by_row = find_row_by_row(weights, account, kernels, [this](const ComputeGraph& graph) { compute(graph); });
    return &*row_by_row;
  }

  const model::Weights& weights;
  int threads;
  MemoryAccount& account;
  std::unique_ptr<ggml_threadpool, ThreadpoolFree> pool;
  Buffer products;  ///< rows that ggml has rounded to the type of its dot product
  Buffer positions;
  Buffer temperatures;                        ///< of the same rows, if the model has them
  const std::byte* step_positions = nullptr;  ///< positions buffer of the kept step graph
  int step_wanted = 0;                        ///< number of rows whose logits the step graph computes
  std::int64_t layer_rows = 0;
  std::optional<States> hidden;  ///< of a step
  LayerEmbeddings of_step;
  LayerEmbeddings of_rows;
  AttentionOp* attention = nullptr;
  FiniteCheck finite;
  std::function<bool()> stop;
  Bf16Kernels kernels;
  Packs packs;
  HostNodes on_host;
  std::optional<WeightSet> row_by_row;  ///< found when first needed
  ComputeGraph layer_graph;
  OneExpert expert;
  ComputeGraph expert_graph;
  ComputeGraph projection_graph;
  ComputeGraph lengths_graph;
  ComputeGraph output_graph;
  ComputeGraph step_graph;
  ComputeGraph team_graph;
};

Executor::Executor(const model::Weights& weights, int threads, MemoryAccount& account, Packing packing)
    : impl_(std::make_unique<Impl>(weights, threads, account, packing)) {}
Executor::~Executor() = default;

int Executor::threads() const { return impl_->threads; }
std::int64_t Executor::layer_rows() const { return impl_->layer_rows; }

std::size_t Executor::packed_bytes(int rows) const { return impl_->packs.bytes(rows); }
Pass Executor::begin_pass(int rows, std::size_t spare) { return impl_->packs.begin_pass(rows, spare); }

States Executor::states(int rows, const char* purpose) {
  return {impl_->account, impl_->weights.hparams(), rows, purpose, impl_->weights.device()};
}

void Executor::embed(std::span<const std::int32_t> tokens, States& hidden) { impl_->embed(tokens, hidden); }

bool Executor::packs_experts(const Pass& pass, int layer) const { return impl_->packs.packs_experts(pass, layer); }

std::size_t Executor::row_bytes(int rows) const {
  const auto& h = impl_->weights.hparams();
  return States::bytes(h, 1) + (impl_->packs.packs_experts(rows) ? ExpertRows::bytes(h, 1) : 0);
}

void Executor::run_layer(const Pass& pass, int layer, States& hidden, int first,
                         std::span<const std::int32_t> positions, AttentionOp& attention, const LayerRun& run) {
  auto& s = *impl_;
  s.attention = &attention;
  s.set_positions(positions);
  const int rows = static_cast<int>(positions.size());
  if (s.weights.hparams().n_embd_layer > 0 && run.tokens.size() != positions.size())
    throw std::logic_error("the layer has token embeddings, but no tokens were given");
  if (run.later != nullptr && run.until != Until::output)
    throw std::logic_error("experts that run later need all rows of the layer");
  s.make_room(s.of_rows, rows, 1);
  s.fill(s.of_rows, run.tokens, layer, layer + 1);
  s.build_layer({.packed = s.packs.of_layer(pass, layer), .later = run.later}, layer, hidden, {first, rows}, run.until);
  s.compute(s.layer_graph);
  s.layer_rows += rows;
}

namespace {

constexpr int kExpertRows = 1024;  // rows per graph: enough for all threads, and a small work space

}  // namespace

void Executor::reserve(const Pass& pass, std::span<const int> chunks, int rows) {
  auto& s = *impl_;
  const auto& h = s.weights.hparams();
  const int most = *std::ranges::max_element(chunks);
  const auto hidden = states(most, "hidden states");
  s.make_room_for_positions(as_size(most));
  s.make_room(s.of_rows, most, 1);
  for (int layer = 0; layer < h.n_layer; ++layer) {
    std::optional<ExpertRows> later;
    if (packs_experts(pass, layer)) {
      later.emplace(s.account, h, most);
      s.reserve_expert(pass, layer, std::min(rows, kExpertRows));
    }
    const Products products{.packed = s.packs.places_of_layer(pass, layer), .later = later ? &*later : nullptr};
    for (const int of_chunk : chunks) {
      s.build_layer(products, layer, hidden, {0, of_chunk}, Until::output);
      s.reserve_work_space(s.layer_graph);
    }
  }
}

bool Executor::add_experts(const Pass& pass, int layer, ExpertRows& rows, States& hidden) {
  constexpr int kCallRows = 512;  // rows' worth of experts per call
  auto& s = *impl_;
  const auto& spec = s.weights.hparams().layer(layer);
  for (int left = kCallRows * spec.n_expert_used; left > 0;) {
    const auto group = rows.next(spec, std::min(left, kExpertRows));
    if (group.rows == 0) return false;
    s.multiply(pass, layer, rows, group, hidden.row(0));
    left -= group.rows;
  }
  return true;
}

void Executor::keys_and_values(const Pass& pass, int layer, const States& hidden,
                               std::span<const std::int32_t> positions, float* keys, float* values) {
  auto& s = *impl_;
  s.set_positions(positions);
  const auto& h = s.weights.hparams();
  const int rows = static_cast<int>(positions.size());
  ggml_context* const context = s.projection_graph.begin({.packed = s.packs.of_layer(pass, layer)});
  ggml_tensor* const x = hidden.tensor(context, 0, rows);
  ggml_tensor* const p = s.projection_graph.wrap(GGML_TYPE_I32, rows, 1, s.positions.data());
  s.projection_graph.finish(add_keys_and_values(context, s.projection_graph.linear(), s.weights, layer, x, p), rows);
  const auto& spec = h.layer(layer);
  const auto width = as_size(spec.n_head_kv) * as_size(spec.head_dim);
  Buffer both(s.account, 2 * width * as_size(rows) * sizeof(float), "keys and values of some rows");
  s.compute(s.projection_graph);
  s.projection_graph.read_result(both.as<float>());
  if (!all_finite(both.as<float>())) throw not_finite(s.weights, layer);
  const float* from = both.as<float>().data();
  for (int row = 0; row < rows; ++row, from += 2 * width) {
    std::memcpy(keys + as_size(row) * width, from, width * sizeof(float));
    std::memcpy(values + as_size(row) * width, from + width, width * sizeof(float));
  }
}

void Executor::output_lengths(int layer, int tokens, const ValueSource& values, const OutputLengths& out) {
  auto& s = *impl_;
  HeadOutputs heads(s.weights, layer, s.account, s.threads);
  s.run_team([&](Worker worker) { heads.unpack(worker); });
  std::optional<PackedSet> packed;
  if (s.packs.packs_any()) {
    packed.emplace(s.weights, s.account, PackedSet::bytes(heads.matrices()), s.threads);
    packed->begin(heads.matrices());
    s.run_team([&](Worker worker) { packed->pack(worker); });
  }
  for (int first = 0; first < tokens; first += HeadOutputs::kTokens) {
    const int count = std::min(HeadOutputs::kTokens, tokens - first);
    for (int head = 0; head < heads.kv_heads(); ++head) values(head, first, count, heads.values(head));
    ggml_context* const context = s.lengths_graph.begin({.packed = packed ? &*packed : nullptr});
    s.lengths_graph.finish(heads.add_lengths(context, s.lengths_graph, count), count);
    s.compute(s.lengths_graph);
    heads.copy_lengths(first, tokens, count, out.absolute, out.euclidean);
  }
}

std::size_t Executor::output_lengths_bytes(const model::Hparams& hparams) { return HeadOutputs::bytes(hparams); }

void Executor::step(Rows whose, std::span<const std::int32_t> tokens, std::span<const std::int32_t> positions,
                    AttentionOp& attention, std::span<float> logits) {
  auto& s = *impl_;
  const int rows = static_cast<int>(tokens.size());
  const int wanted = static_cast<int>(logits.size()) / s.weights.hparams().n_vocab;
  const auto experts = whose == Rows::of_several ? Products::Experts::row_by_row : Products::Experts::together;
  const Products products{s.packs.of_step(), Products::Calls::of_a_step, s.row_by_row_of(whose, rows), experts};
  const bool same = s.step_graph.rows() == rows && s.step_graph.products() == products && s.step_wanted == wanted;
  if (!same || s.step_positions != s.positions.data()) s.build_step(rows, wanted, products);
  s.attention = &attention;
  s.set_positions(positions);
  s.embed(tokens, *s.hidden);
  s.fill(s.of_step, tokens, 0, s.weights.hparams().n_layer);
  s.compute(s.step_graph);
  s.layer_rows += std::int64_t{rows} * s.weights.hparams().n_layer;
  if (!logits.empty()) s.step_graph.read_result(logits);
  s.check_logits(logits);
}

void Executor::logits(const States& hidden, int first, int n, float* logits) {
  auto& s = *impl_;
  ggml_context* const context = s.output_graph.begin();
  ggml_tensor* const x = hidden.tensor(context, first, n);
  s.output_graph.finish(add_output(context, s.output_graph.linear(), s.weights, x), n);
  s.compute(s.output_graph);
  const std::span out(logits, as_size(n) * as_size(s.weights.hparams().n_vocab));
  s.output_graph.read_result(out);
  s.check_logits(out);
}

void Executor::last_states(const States& hidden, int first, int n, float* states) {
  auto& s = *impl_;
  const int width = s.weights.hparams().n_embd;
  ggml_context* const context = s.output_graph.begin();
  ggml_tensor* const x = hidden.tensor(context, first, n);
  s.output_graph.finish(add_final_norm(context, s.weights, x), n);
  s.compute(s.output_graph);
  const std::span out(states, as_size(n) * as_size(width));
  s.output_graph.read_result(out);
  s.check_logits(out);
}

void Executor::set_stop(std::function<bool()> stop) { impl_->stop = std::move(stop); }

}  // namespace winnow::network
