// SPDX-License-Identifier: Apache-2.0
// Questions over documents with a model on a device, compared with the same model on the CPU.
#include "fixture.h"
#include "support/host_device.h"

namespace winnow::test {
namespace {

constexpr const char* kMethods[] = {"recompute", "reuse", "epic", "cacheblend", "samkv"};

class DocumentsOnADevice : public MultiTest {
 protected:
  static SessionOptions options() { return {2, Precision::f32, 100}; }

  /// Documents that a session reads.
  Documents read_by(Session& session) {
    Documents out;
    for (const int n : {120, 64, 200}) {
      const DocumentText text{"", ControlTokens::as_text, tokens(n, 100 + static_cast<unsigned>(n))};
      out.push_back(documents::resident(documents::ingest(session, text, options_of("full", "", "f32"))));
    }
    return out;
  }

  /// Logits after a question, and after a few more tokens.
  std::vector<float> answer(Session& session, const Documents& documents, const char* method) {
    auto asked = winnow::ask(session, documents, question_, {AskSpec::parse(method), {}, KvType::parse("f32")});
    auto logits = asked.logits;
    const auto later = session.extend(asked.cache, tokens(5, 3));
    logits.insert(logits.end(), later.begin(), later.end());
    return logits;
  }

  void expect_near(const std::vector<float>& got, const std::vector<float>& want) const {
    constexpr double kRounding = 1e-3;  // of logits of tiny networks, which are near 1
    EXPECT_LT(distance(got, want), kRounding);
  }

  std::shared_ptr<device::Device> device_ = tested_device();
  Session on_device_{Model::load(path_, {.device = device_}), options()};
};

TEST_F(DocumentsOnADevice, are_read_and_asked_like_those_on_the_cpu) {
  Session with_kernels(Model::load(path_, {.device = tested_device_with_kernels()}), options());
  const auto of_cpu = read_by(*session_);
  const auto of_device = read_by(on_device_);
  for (const auto* method : kMethods) {
    SCOPED_TRACE(method);
    const auto want = answer(*session_, of_cpu, method);
    expect_near(answer(on_device_, of_device, method), want);
    expect_near(answer(with_kernels, of_cpu, method), want);
    expect_near(answer(*session_, of_device, method), want);
  }
}

TEST_F(DocumentsOnADevice, can_be_stopped_anywhere_and_go_on_later) {
  const auto some = read_by(on_device_);
  for (const auto* method : kMethods) {
    const auto want = answer(on_device_, some, method);
    for (const int after : {0, 3, 20}) {
      int calls = 0;
      on_device_.on_stop([&] { return calls++ >= after; });
      EXPECT_THROW(answer(on_device_, some, method), Interrupted) << method;
      on_device_.on_stop({});
    }
    EXPECT_EQ(answer(on_device_, some, method), want) << method;
  }
}

TEST_F(DocumentsOnADevice, leave_nothing_there) {
  const auto some = read_by(on_device_);
  answer(on_device_, some, "samkv");
  const auto before = device_->account().held();
  for (int i = 0; i < 3; ++i) answer(on_device_, some, "samkv");
  EXPECT_EQ(device_->account().held(), before);
}

}  // namespace
}  // namespace winnow::test
