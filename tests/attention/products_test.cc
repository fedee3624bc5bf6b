#include "attention/products.h"

#include "fixture.h"

namespace winnow::attention {
namespace {

TEST(PackedRows, ProductsAgreeWithDoublePrecision) {
  for (const int dim : {1, 8, 64, 80, 256}) {
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
              double sum = 0;  // of absolute products: each of dim products and sums is rounded
              for (int c = 0; c < dim && j < count; ++c) {
                const double product = static_cast<double>(left[z(i * dim + c)]) * rows[z(j * dim + c)];
                want += product;
                sum += std::abs(product);
              }
              ASSERT_NEAR(out[z(i * packed.stride() + j)], want, 2 * dim * sum * 0x1p-24) << dim << ", " << count << ": " << i << ", " << j;
            }
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace winnow::attention
