// SPDX-License-Identifier: Apache-2.0
// The network on a device, whose memory the host cannot touch, compared with llama.cpp on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "network/parity.h"
#include "support/host_device.h"
#include "support/rounding.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

struct Case {
  std::string name;
  TinyModel model;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// Every token uses all experts, with its own weights, so that rounding cannot change the choice.
Case case_of(const std::string& name, TinyModel model) {
  if (model.experts() > 0) model.n_expert_used = model.experts();
  Case out{model.arch + name, model};
  std::ranges::replace(out.name, '-', '_');
  return out;
}

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const auto& row : tiny_architectures()) {
    TinyModel model = tiny_of_heads(std::string(row.name), 6, 2, 64);
    model.optional_biases = row.optional_biases != Biases{};
    out.push_back(case_of("", model));
  }
  TinyModel factors = tiny_of_heads("llama", 6, 2, 64);
  factors.rope_factors = true;
  factors.scaling = {"yarn", 4, 64};
  out.push_back(case_of("_rope_factors", factors));
  TinyModel own = tiny_of_heads("gemma4", 6, 2, 64);
  own.layer_embedding = 16;
  own.shared_kv = 3;
  out.push_back(case_of("_layer_embeddings_and_shared_keys", own));
  own.n_expert = 8;
  own.router_scale = 32;
  out.push_back(case_of("_experts", own));
  for (const auto type : {GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_K}) {
    TinyModel model;
    model.n_embd = 256;
    model.n_ff = 256;
    model.type = type;
    out.push_back(case_of(std::string("_") + ggml_type_name(type), model));
  }
  return out;
}

/// GPUs multiply f32 in TF32 or f16, of 10 bits; the host device in f32.
double tolerance(const TinyModel& model) {
  if (model.type == GGML_TYPE_F32 && std::getenv("WINNOW_TEST_DEVICE") != nullptr)
    return half_tolerance(10, model.n_layer, largest_gain(model));
  if (model.type == GGML_TYPE_F16) return half_tolerance(10, 2);
  if (model.type == GGML_TYPE_BF16) return half_tolerance(7, 2);
  return model.type == GGML_TYPE_F32 ? tolerance_of(model) : quantized_tolerance(2);
}

class DeviceParity : public testing::TestWithParam<Case> {
 protected:
  DeviceParity() : path_(folder_ / "tiny.gguf") { write_tiny_gguf(GetParam().model, path_); }
  TempFolder folder_;
  std::string path_;
};

TEST_P(DeviceParity, every_token_and_a_batch_of_five) {
  const auto& model = GetParam().model;
  const auto device = tested_device();
  expect_parity(path_, tolerance(model), largest_gain(model), kPrompt, {1, 7, kPrompt}, device);
  EXPECT_EQ(device->account().held(), 0U) << "all of it is free again";
}

INSTANTIATE_TEST_SUITE_P(all, DeviceParity, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(DeviceMemoryOfANetwork, is_counted_to_the_byte) {
  TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  TinyModel model = tiny_of_heads("llama", 6, 2, 64);
  model.rope_factors = true;
  write_tiny_gguf(model, path);
  constexpr std::size_t kBytes = std::size_t{1} << 30U;
  const auto device = host_device(kBytes);
  Network network(path, 1, 1, kPrompt, DenseAttention::grouped, network::Packing::none, device);
  EXPECT_GT(device->account().held(), 0U);
  network.prefill(random_tokens(kPrompt, 64, 7), 8);
  network.step(random_tokens(1, 64, 7), {{0, 0}});
  EXPECT_EQ(device->account().held(), kBytes - device->available());
}

TEST(ADeviceWithoutAnOperation, is_refused_by_a_sentence) {
  TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  write_tiny_gguf(tiny_of_heads("llama", 6, 2, 64), path);
  constexpr std::size_t kBytes = std::size_t{1} << 30U;
  Network network(path, 1, 1, kPrompt, DenseAttention::grouped, network::Packing::none,
                  host_device(kBytes, GGML_OP_RMS_NORM));
  try {
    network.prefill(random_tokens(kPrompt, 64, 7), kPrompt);
    FAIL() << "it was computed";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("host device cannot compute RMS_NORM"), std::string::npos) << error.what();
  }
}

TEST(ADeviceThatIsFull, is_an_error_whatever_does_not_fit) {
  TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  write_tiny_gguf(tiny_of_heads("llama", 6, 2, 64), path);
  const auto tokens = random_tokens(kPrompt, 64, 7);
  int failures = 0;
  bool done = false;
  for (std::size_t bytes = 1 << 12; !done; bytes += bytes / 8) {
    try {
      Network network(path, 1, 1, kPrompt, DenseAttention::grouped, network::Packing::none, host_device(bytes));
      network.prefill(tokens, kPrompt);
      network.step(std::span(tokens).first(1), {{0, kPrompt - 1}});
      done = true;
    } catch (const MemoryError& error) {
      ++failures;
      EXPECT_NE(std::string(error.what()).find("available"), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(failures, 3);
}

}  // namespace
}  // namespace winnow::test
