// SPDX-License-Identifier: Apache-2.0
#include "layer.h"

#include <nanobind/stl/string.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bind.h"
#include "winnow/error.h"

namespace winnow::python {

namespace {

using Row = void (policy::LayerView::*)(int, int, std::span<float>) const;

Cube all_rows(const policy::LayerView& view, Row row) {
  const auto heads = static_cast<std::size_t>(view.shape.kv_heads);
  const auto tokens = static_cast<std::size_t>(view.tokens());
  const auto dim = static_cast<std::size_t>(view.shape.head_dim);
  std::vector<float> out(heads * tokens * dim);
  auto* to = out.data();
  for (int head = 0; head < view.shape.kv_heads; ++head) {
    for (int token = 0; token < view.tokens(); ++token, to += dim) (view.*row)(head, token, {to, dim});
  }
  return array_of<Cube>(std::move(out), {heads, tokens, dim});
}

nb::object as_object(policy::ResultArray seen) {
  const auto numbers = std::make_shared<const std::vector<float>>(std::move(seen.numbers));
  return nb::cast(nb::ndarray<nb::numpy, const float, nb::c_contig>(numbers->data(), seen.shape.size(),
                                                                    seen.shape.data(), owner_of(numbers)));
}

}  // namespace

const policy::LayerView& Layer::view() const {
  if (view_ == nullptr) throw UsageError("the layer can only be used until its score() returns");
  return *view_;
}

Cube Layer::keys() const { return all_rows(view(), &policy::LayerView::key); }

Cube Layer::values() const { return all_rows(view(), &policy::LayerView::value); }

Rows Layer::attention() const {
  if (!observers_->attention)
    throw UsageError(
        "the method observes no attention: set `observe` of its class to a number of last queries or to 'all'");
  const auto& observed = view()[*observers_->attention];
  std::vector<float> out;
  for (int head = 0; head < observed.query_heads(); ++head) {
    const auto row = observed.head(head);
    out.insert(out.end(), row.begin(), row.end());
  }
  return array_of<Rows>(std::move(out),
                        {static_cast<std::size_t>(observed.query_heads()), static_cast<std::size_t>(observed.size())});
}

nb::object Layer::seen(const std::string& name) const {
  const auto& all = observers_->named;
  const auto found = std::ranges::find(all, name, &policy::AddedObserver::name);
  if (found == all.end()) {
    std::vector<std::string> names;
    for (const auto& one : all) names.push_back(one.name);
    throw UsageError(fmt::format("the method does not observe {}: the `observers` of its class are {}", name,
                                 names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  auto arrays = found->arrays(view());
  if (arrays.size() == 1) return as_object(std::move(arrays.front()));
  nb::dict out;
  for (auto& array : arrays) {
    const auto key = array.name;
    out[key.c_str()] = as_object(std::move(array));
  }
  return out;
}

}  // namespace winnow::python
