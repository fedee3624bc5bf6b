// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence.h"

#include "base/as_size.h"

namespace winnow::engine {

Sequence::Sequence(const CacheOptions& options, const model::Hparams& hparams, MemoryAccount& account,
                   const PromptSize& size)
    : seen(size.tokens),
      options_(options),
      hparams_(&hparams),
      parent_(&account),
      account_(std::make_unique<MemoryAccount>(parent_)) {
  const auto budgets = layer_budgets(options, hparams, size);
  const auto terms = terms_of(options, hparams, size);
  for (int l = 0; l < hparams.n_kv_layer; ++l)
    layers_.emplace_back(*account_, method_of(options_, hparams.layer(l)), lane_shape(options, hparams.layer(l)),
                         terms[l], budgets[l]);
}

Sequence::Sequence(const Sequence& other, WithoutLayers)
    : seen(other.seen),
      tokens(other.tokens),
      attended(other.attended),
      options_(other.options_),
      hparams_(other.hparams_),
      parent_(other.parent_),
      account_(std::make_unique<MemoryAccount>(parent_)) {}

SequenceCopy::SequenceCopy(const Sequence& of) : of_(of), copy_(new Sequence(of, Sequence::WithoutLayers())) {}

bool SequenceCopy::advance() {
  auto& layers = copy_->layers_;
  if (layers.size() < of_.layers_.size()) layers.push_back(of_.layers_[layers.size()].clone(*copy_->account_));
  return layers.size() < of_.layers_.size();
}

std::vector<std::vector<int>> Sequence::limits() const {
  std::vector<std::vector<int>> out;
  for (const auto& layer : layers_) out.emplace_back(layer.limit().begin(), layer.limit().end());
  return out;
}

std::size_t Sequence::entries_held() const {
  int out = 0;
  for (int l = 0; l < layers(); ++l) {
    for (int head = 0; counts(l) && head < lanes(l).shape().kv_heads; ++head) out += lanes(l).length(head);
  }
  return as_size(out);
}

Sequence Sequence::clone() const {
  SequenceCopy copy(*this);
  while (copy.advance()) continue;
  return std::move(*copy.take());
}

void Sequence::put_from(int position, Sequence&& others) {
  for (int l = 0; l < layers(); ++l) {
    if (const int window = hparams_->layer(l).window; window > 0) {
      lanes(l).put_last(position, std::move(others.lanes(l)), window);
    } else {
      layer(l).put_from(position, std::move(others.layer(l)));
    }
  }
  seen = position + others.seen;
  tokens.resize(as_size(position));
  tokens.insert(tokens.end(), others.tokens.begin(), others.tokens.end());
}

void Sequence::append(Sequence&& others) {
  std::vector<cache::GrowingLanes> windows;
  for (int l = 0; l < layers(); ++l) {
    if (const int window = hparams_->layer(l).window; window > 0) {
      windows.push_back(lanes(l).clone(*account_));
      windows.back().put_last(seen, std::move(others.lanes(l)), window);
    } else {
      layer(l).reserve(others.seen);
    }
  }
  auto next = windows.begin();
  for (int l = 0; l < layers(); ++l) {
    if (hparams_->layer(l).window > 0) {
      lanes(l) = std::move(*next++);
    } else {
      layer(l).append(std::move(others.layer(l)));
    }
  }
  seen += others.seen;
  tokens.insert(tokens.end(), others.tokens.begin(), others.tokens.end());
  attended = -1;  // unknown: those steps were not taken here
}

std::shared_ptr<const WindowLanes> Sequence::copy_windows() const {
  if (hparams_->n_windowed() == 0) return nullptr;
  const std::shared_ptr<WindowLanes> out(new WindowLanes{MemoryAccount(parent_), {}});
  for (int l = 0; l < layers(); ++l) {
    if (hparams_->layer(l).window > 0) out->lanes.push_back(lanes(l).clone(out->account));
  }
  return out;
}

void Sequence::put_back(const WindowLanes& windows) {
  for (int l = 0; l < layers(); ++l) {
    if (hparams_->layer(l).window == 0) continue;
    auto& of_layer = lanes(l);
    of_layer = cache::GrowingLanes(*account_, of_layer.shape());  // frees first, to keep the peak low
    of_layer = windows.lanes[as_size(hparams_->place_of[l])].clone(*account_);
  }
}

void Sequence::reserve(int count) {
  for (auto& layer : layers_) layer.reserve(count);
}

void Sequence::end_step() {
  for (auto& layer : layers_) layer.end_step();
}

}  // namespace winnow::engine
