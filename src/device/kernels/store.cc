// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "device/kernels/calls.h"
#include "device/kernels/encode.h"
#include "device/kernels/rows.h"
#include "device/kernels/turning.h"

namespace winnow::device {
namespace {

inline constexpr int kStoreThreads = 256;
inline constexpr int kStoreEach = 4;  ///< octets per thread, whose loads overlap

/// Encodes octets of a run. Octets of one row, and thus of a block of 32, belong to adjacent threads.
template <class R>
class StoreOctets {
 public:
  WINNOW_DEVICE StoreOctets(const StoreTask& task, const StoredRun& run)
      : t_(task),
        run_(run),
        from_(run.from, run.from_scales, task.dim),
        stored_(stored_of(task.element, task.dim)),
        turned_(task.angles.fine != nullptr && (run.positions != nullptr || run.shift != 0)) {}

  WINNOW_DEVICE void run() {
    Place place[kStoreEach];
    typename R::Loaded loaded[kStoreEach];
    WINNOW_UNROLL
    for (int i = 0; i < kStoreEach; ++i) {
      place[i] = place_of((block_x() * kStoreEach + i) * kStoreThreads + thread());
      if (place[i].is_read) loaded[i] = from_.load(place[i].from, place[i].at);
    }
    WINNOW_UNROLL
    for (int i = 0; i < kStoreEach; ++i) store(place[i], loaded[i]);
  }

 private:
  WINNOW_DEVICE static int stored_of(Element element, int dim) {
    return is_scaled(element) ? (dim + kQuantized - 1) / kQuantized * kQuantized : dim;
  }

  struct Place {
    int entry, from, to, at;
    bool is_read;     ///< false: beyond the source's part of the row
    bool is_written;  ///< false: beyond the run's entries
  };

  WINNOW_DEVICE Place place_of(int octet) const {
    const int octets = stored_ / 8;
    Place out = {};
    out.entry = octet / octets;
    out.at = octet % octets * 8;
    out.is_written = out.entry < run_.count;
    out.is_read = out.is_written && out.at < stored_of(element_of<R>(), t_.dim);
    if (!out.is_written) return out;
    const int row = run_.rows != nullptr ? run_.rows[out.entry] - run_.first_row : run_.first_row + out.entry;
    out.from = row * run_.from_step;
    out.to = run_.to_rows != nullptr ? run_.to_rows[out.entry] : out.entry;
    return out;
  }

  WINNOW_DEVICE void store(const Place& place, const typename R::Loaded& loaded) const {
    float x[8] = {};
    if (place.is_read && place.at < t_.dim) numbers(place, loaded, x);
    if (t_.bad != nullptr && !are_finite(x)) raise_flag(t_.bad);
    const RowPlace to{run_.to, run_.to_scales, static_cast<std::size_t>(place.to) * stored_ + place.at,
                      place.is_written};
    if (t_.element == element_of<R>() && is_scaled(t_.element) && !turned_ && run_.factors == nullptr) {
      copy_octet(to, loaded);
    } else {
      encode_octet(t_.element, to, x);
    }
  }

  WINNOW_DEVICE void scaled_numbers(const Place& place, const typename R::Loaded& loaded, float (&x)[8]) const {
    R::numbers(loaded, 0, x);
    if (run_.factors == nullptr) return;
    WINNOW_UNROLL
    for (float& e : x) e *= run_.factors[place.entry];
  }

  WINNOW_DEVICE void numbers(const Place& place, const typename R::Loaded& loaded, float (&x)[8]) const {
    scaled_numbers(place, loaded, x);
    if (turned_ && place.at < 2 * t_.angles.pairs) turn(place, x);
  }

  WINNOW_DEVICE void turn(const Place& place, float (&x)[8]) const {
    const int position = run_.positions != nullptr ? run_.positions[place.entry] * run_.sign : 0;
    const Turn by(t_.angles, position - run_.shift);
    const int pairs = t_.angles.pairs;
    if (t_.angles.halves == 0) return turn_adjacent(by, t_.angles, place.at, x);
    const bool second = place.at >= pairs;
    float y[8];
    scaled_numbers(place, from_.load(place.from, second ? place.at - pairs : place.at + pairs), y);
    if (second) {
      turn_halves(by, place.at - pairs, y, x);
    } else {
      turn_halves(by, place.at, x, y);
    }
  }

  const StoreTask& t_;
  const StoredRun run_;
  R from_;
  int stored_;  ///< elements of a written row
  bool turned_;
};

template <class R>
WINNOW_KERNEL(kStoreThreads)
store_kernel(const StoreTask task) {
  StoreOctets<R>(task, task.runs[block_y()]).run();
}

template <class R>
const char* store_from(const StoreTask& task, void* stream) {
  const int octets = (task.dim + kQuantized - 1) / kQuantized * kQuantized / 8;
  constexpr int kOfBlock = kStoreThreads * kStoreEach;
  const Grid grid{(task.most * octets + kOfBlock - 1) / kOfBlock, task.run_count, kStoreThreads, 0};
  return launch<store_kernel<R>>(grid, stream, task);
}

}  // namespace

const char* store(const StoreTask& task, void* stream) {
  if (task.dim <= 0 || task.dim % 8 != 0) return "a head's size must be a multiple of 8";
  if (const char* const problem = problem_of(task.angles, task.dim); problem != nullptr) return problem;
  switch (task.source) {
    case Element::f32:
      return store_from<SingleRows>(task, stream);
    case Element::f16:
      return store_from<PlainRows<F16>>(task, stream);
    case Element::bf16:
      return store_from<PlainRows<Bf16>>(task, stream);
    case Element::q8_0:
      return store_from<Q8Rows<8>>(task, stream);
    case Element::q4_0:
      return store_from<Q4Rows<8>>(task, stream);
  }
  return "no such element";
}

}  // namespace winnow::device
