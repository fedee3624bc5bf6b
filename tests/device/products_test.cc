// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "memory.h"
#include "rows.h"

namespace winnow::device::test {
namespace {

struct Multiplied {
  Element element = Element::bf16;
  int dim = 64;
  int count = 1;
  bool by_vector = false;
};

class Products : public testing::TestWithParam<Multiplied> {};

TEST_P(Products, are_those_in_double_precision) {
  const Multiplied& what = GetParam();
  std::mt19937 random(3);
  const Encoded rows = encoded(what.element, normal(random, z(what.count) * z(what.dim)));
  const auto vector = normal(random, z(what.dim));
  in_several_orders([&] {
    const Array<std::uint16_t> device_rows(rows.bits);
    const Array<float> device_vector(vector);
    const Array<double> out(z(what.count));
    const ProductsTask task{.rows = device_rows.address(),
                            .vector = what.by_vector ? device_vector.address() : nullptr,
                            .out = out.address(),
                            .element = what.element,
                            .count = what.count,
                            .dim = what.dim};
    EXPECT_EQ(winnow_kernels()->products(task, nullptr), nullptr);
    const auto got = out.read();
    for (int j = 0; j < what.count; ++j) {
      double want = 0;
      double sizes = 0;
      for (int c = what.dim - 1; c >= 0; --c) {
        const double x = rows.values[z(j * what.dim + c)];
        const double y = what.by_vector ? vector[z(c)] : x;
        want += x * y;
        sizes += std::abs(x * y);
      }
      // Squares of elements are exact in f32.
      const double of_element = what.by_vector ? std::numeric_limits<float>::epsilon() / 2.0 : 0;
      ASSERT_NEAR(got[z(j)], want, sizes * (of_element + what.dim * std::numeric_limits<double>::epsilon()))
          << "row " << j;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, Products,
                         testing::Values(Multiplied{Element::f16, 8, 1}, Multiplied{Element::bf16, 64, 300, true},
                                         Multiplied{Element::f16, 80, 129}, Multiplied{Element::bf16, 128, 128},
                                         Multiplied{Element::f16, 128, 257, true},
                                         Multiplied{Element::bf16, 256, 127, true}));

}  // namespace
}  // namespace winnow::device::test
