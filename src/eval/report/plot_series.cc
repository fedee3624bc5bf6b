// SPDX-License-Identifier: Apache-2.0
#include "eval/report/plot_series.h"

#include <algorithm>
#include <iterator>

#include "eval/report/chart.h"
#include "eval/report/script.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

std::size_t place_in(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  const auto place = static_cast<std::size_t>(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return place;
}

bool is_visible(const Tradeoff& tradeoff, const Mean& quality) {
  return tradeoff.quality.scale == Scale::linear || quality.value > 0;
}

std::string colour_of(const std::string& spec, std::vector<std::string>& specs) {
  if (spec == "full") return kInk;
  const std::size_t number = place_in(specs, spec);
  return number < Chart::kColoured ? series_colour(number) : kGrid;
}

PlotSeries& series_in(PlotContents& contents, const MethodKey& point) {
  const MethodKey method = {point.spec, "", point.kv_type};
  const auto found = std::find_if(contents.series.begin(), contents.series.end(),
                                  [&](const PlotSeries& series) { return series.method == method; });
  if (found != contents.series.end()) return *found;
  return contents.series.emplace_back(
      PlotSeries{method, colour_of(point.spec, contents.specs), place_in(contents.kv_types, point.kv_type), {}});
}

}  // namespace

bool PlotSeries::has_own_colour() const { return colour != kGrid; }

PlotContents contents_of(const Tradeoff& tradeoff) {
  PlotContents out;
  for (const bool full : {false, true}) {  // the methods decide which KV type comes first
    for (const auto& point : tradeoff.points) {
      if (point.cost > 0 && is_visible(tradeoff, point.quality) && full == (point.method.spec == "full"))
        series_in(out, point.method).points.push_back(&point);
    }
  }
  if (out.series.empty()) throw InputError("there is nothing to draw: all costs or all qualities are 0");
  for (auto& series : out.series)
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const Tradeoff::Point* a, const Tradeoff::Point* b) { return a->cost < b->cost; });
  out.has_level = tradeoff.full_cache && is_visible(tradeoff, *tradeoff.full_cache);
  return out;
}

int dash_of(std::size_t kv_type) {
  constexpr int kDashes[] = {1, 2, 4, 5};  // 3 is the full cache's level
  return kDashes[kv_type % std::size(kDashes)];
}

int mark_of(std::size_t kv_type) {
  constexpr int kMarks[] = {7, 5, 9, 11, 13, 6, 4, 8};  // filled circles, squares, triangles …
  return kMarks[kv_type % std::size(kMarks)];
}

}  // namespace winnow::eval
