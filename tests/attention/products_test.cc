// SPDX-License-Identifier: Apache-2.0
#include "attention/products.h"

#include "fixture.h"

namespace winnow::attention {
namespace {

/// `values` [n][dim] encoded row by row.
struct Stored {
  Stored(ElementType type, std::span<const float> values, int dim)
      : bytes(values.size() / z(dim) * cache::row_bytes(type, dim)),
        rows{bytes.data(), cache::row_bytes(type, dim), static_cast<int>(values.size()) / dim, dim, type} {
    for (std::size_t i = 0; i < z(rows.count); ++i) {
      cache::encode_row(type, values.subspan(i * z(dim), z(dim)), &bytes[i * rows.stride]);
    }
  }

  std::vector<std::byte> bytes;
  cache::Rows rows;
};

TEST(PackedRows, products_agree_with_double_precision) {
  for (const int dim : {1, 8, 64, 80, 256, 512}) {
    for (const int count : {1, 31, 32, 33, 480}) {
      for (const int lefts : {1, 3, 4, 9}) {
        const auto rows = noise(z(count) * z(dim), 1);
        const auto left = noise(z(lefts) * z(dim), 2);
        const PackedRows packed(rows, dim);
        on_every_target([&] {
          std::vector<float> out(z(lefts) * z(packed.stride()), std::nanf(""));
          packed.multiply(left, out);
          for (int i = 0; i < lefts; ++i) {
            for (int j = 0; j < packed.stride(); ++j) {
              double want = 0;
              double sum = 0;  // of absolute products: dim products and sums are rounded
              for (int c = 0; c < dim && j < count; ++c) {
                const double product = static_cast<double>(left[i * dim + c]) * rows[j * dim + c];
                want += product;
                sum += std::abs(product);
              }
              ASSERT_NEAR(out[i * packed.stride() + j], want, 2 * dim * sum * 0x1p-24)
                  << dim << ", " << count << ": " << i << ", " << j;
            }
          }
        });
      }
    }
  }
}

TEST(ComputeType, agree_with_double_precision) {
  for (const auto type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    for (const int dim : {8, 64, 80, 128}) {
      const int count = 300;  // more than a stretch
      const auto rows = noise(z(count) * z(dim), 7);
      const auto query = noise(z(dim), 8);
      const Stored stored(type, rows, dim);
      const cache::Rows& all = stored.rows;
      const auto decoded_rows = decoded(all, 0, count);
      on_every_target([&] {
        std::vector<float> out(z(count), 1.5F);
        add_products(query, all, out);
        for (std::size_t i = 0; i < z(count); ++i) {
          double want = 1.5;
          double sum = 1.5;  // of absolute products: dim products and sums are rounded
          for (std::size_t c = 0; c < z(dim); ++c) {
            const double product = static_cast<double>(decoded_rows[i * z(dim) + c]) * query[c];
            want += product;
            sum += std::abs(product);
          }
          ASSERT_NEAR(out[i], want, 2 * dim * sum * 0x1p-24) << name_of(type) << " " << dim << ": " << i;
        }
      });
    }
  }
}

TEST(Cosines, agree_with_double_precision) {
  for (const auto type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::q8_0, ElementType::q4_0}) {
    for (const int dim : {64, 80, 96}) {
      const int count = 70;
      auto rows = noise(z(count) * z(dim), 3);
      std::fill_n(rows.begin() + 5 * dim, dim, 0.0F);
      const auto query = noise(z(dim), 4);
      const Stored stored(type, rows, dim);
      const cache::Rows& all = stored.rows;
      const auto decoded_rows = decoded(all, 0, count);
      on_every_target([&] {
        std::vector<float> out(z(count));
        cosines(all, query, out);
        for (std::size_t i = 0; i < z(count); ++i) {
          double product = 0;
          double square = 0;
          double query_square = 0;
          for (std::size_t c = 0; c < z(dim); ++c) {
            const double x = decoded_rows[i * z(dim) + c];
            product += x * query[c];
            square += x * x;
            query_square += static_cast<double>(query[c]) * query[c];
          }
          // dim products and sums are rounded, relative to the two lengths (Cauchy-Schwarz); the lengths and the
          // quotient are rounded too.
          ASSERT_NEAR(out[i], i == 5 ? 0 : product / std::sqrt(square * query_square), (3 * dim + 8) * 0x1p-24)
              << "row " << i;
        }
      });
    }
  }
}

TEST(Cosines, of_closed_gates_need_not_be_computed) {
  for (const auto type : {ElementType::f16, ElementType::q8_0}) {
    const int count = 70;
    const int dim = 80;
    const auto rows = noise(z(count) * z(dim), 3);
    const auto query = noise(z(dim), 4);
    const Stored stored(type, rows, dim);
    const cache::Rows& all = stored.rows;
    std::vector<float> gates(z(count), 0.25F);
    for (const std::size_t i : {3, 4, 37, 69}) gates[i] = i == 37 ? -0.5F : 0.5F;
    on_every_target([&] {
      std::vector<float> want(z(count));
      std::vector<float> out(z(count), 7.0F);
      cosines(all, query, want);
      cosines_where(gates, 0.5F, all, query, out);
      for (std::size_t i = 0; i < z(count); ++i) {
        if (std::abs(gates[i]) == 0.5F) {
          ASSERT_EQ(out[i], want[i]) << "row " << i;
        }
        if (out[i] != want[i]) {
          ASSERT_EQ(out[i], 0) << "row " << i;
        }
      }
      cosines_where(gates, 0, all, query, out);
      ASSERT_EQ(out, want);
    });
  }
}

}  // namespace
}  // namespace winnow::attention
