// SPDX-License-Identifier: Apache-2.0
// Tests of the grammar of specs, budgets and KV types.
#include "winnow/spec.h"

#include <gtest/gtest.h>

#include <random>

#include "winnow/error.h"
#include "winnow/kv_type.h"
#include "winnow/methods.h"
#include "winnow/policy/registry.h"

namespace winnow {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// The built-in presets and a wrapper, `twice(X)`, which refuses full.
policy::Registry with_wrapper() {
  policy::Registry registry = policy::built_in();
  registry.wrappers.push_back({"twice",
                               "for tests",
                               "a paper",
                               {{"share", policy::Option::Number{0.5, 0, 1}, "none"}},
                               [](const policy::Method& inner, const policy::Options&) {
                                 if (inner.name == "full")
                                   throw UsageError("twice(full): full has no parts to exchange");
                                 return inner;
                               }});
  return registry;
}

TEST(Spec, canonical_form_leaves_defaults_out) {
  EXPECT_EQ(Spec::parse("snapkv").print(), "snapkv");
  EXPECT_EQ(Spec::parse("snapkv:kernel=7").print(), "snapkv");
  EXPECT_EQ(Spec::parse("snapkv:pool=mean,window=16").print(), "snapkv:window=16,pool=mean");
  EXPECT_EQ(
      Spec::parse("snapkv").print_full(),
      "snapkv:window=32,window-share=any,question-share=50,rows=sum,weights=none,kernel=7,pool=max,pad=valid,gqa=mean,"
      "positions=absolute");
  EXPECT_EQ(Spec().print(), "full");
}

TEST(Spec, every_preset_with_random_options_reads_back) {
  std::mt19937 random(1);
  for (const auto& preset : policy::built_in().presets) {
    for (int round = 0; round < 50; ++round) {
      std::string text = preset.name;
      char separator = ':';
      for (const auto& option : preset.options) {
        if (random() % 2 == 0) continue;
        std::string value = option.default_text();
        if (const auto* n = std::get_if<policy::Option::Integer>(&option.kind))
          value = std::to_string(n->least + static_cast<int>(random() % 20) * 2);
        if (const auto* c = std::get_if<policy::Option::Choice>(&option.kind)) value = c->all[random() % c->all.size()];
        text += separator + option.name + "=" + value;
        separator = ',';
      }
      if (text.find("=sinkcache") != std::string::npos && text.find("=prefill") != std::string::npos) continue;
      if (error_of([&] { Spec::parse(text); }).find("must be at least window=") != std::string::npos) continue;
      const Spec spec = Spec::parse(text);
      EXPECT_EQ(Spec::parse(spec.print()), spec) << text;
      EXPECT_EQ(Spec::parse(spec.print_full()), spec) << text;
    }
  }
}

TEST(Spec, lists_split_at_commas_that_no_key_follows) {
  const auto specs = Spec::parse_list("snapkv:window=16,kernel=5,streaming-llm,full,snapkv");
  ASSERT_EQ(specs.size(), 4U);
  EXPECT_EQ(specs[0].print(), "snapkv:window=16,kernel=5");
  EXPECT_EQ(specs[1].print(), "streaming-llm");
  EXPECT_EQ(specs[3].print(), "snapkv");
}

TEST(Spec, wrappers_nest_and_read_back) {
  const auto registry = with_wrapper();
  const Spec spec = Spec::parse("twice(twice(snapkv:window=16)):share=0.25", registry);
  EXPECT_EQ(spec.print(), "twice(twice(snapkv:window=16)):share=0.25");
  EXPECT_EQ(Spec::parse(spec.print_full(), registry).print(), spec.print());
  EXPECT_EQ(error_of([&] { Spec::parse("twice(full)", registry); }), "twice(full): full has no parts to exchange");
  EXPECT_NE(error_of([&] { Spec::parse("twice", registry); }).find("needs a method in brackets"), std::string::npos);
  EXPECT_NE(error_of([&] { Spec::parse("twice(snapkv):share=2", registry); }).find("0 to 1"), std::string::npos);
}

TEST(Spec, errors_name_what_is_near_and_what_there_is) {
  const auto unknown = error_of([] { Spec::parse("snapky"); });
  EXPECT_EQ(unknown.find("unknown method 'snapky': did you mean snapkv? There are auto, auto:fast, full, "), 0U)
      << unknown;
  for (const char* spec : {"auto:slow", "refit(auto)", "ada(auto:fast)"}) {
    EXPECT_NE(error_of([&] { Spec::parse(spec); }).find("auto and auto:fast are whole specs"), std::string::npos)
        << spec;
  }
  for (const auto& preset : policy::built_in().presets)
    EXPECT_NE(unknown.find(preset.name), std::string::npos) << unknown;
  for (const auto& wrapper : policy::built_in().wrappers)
    EXPECT_NE(unknown.find(wrapper.name + "(X)"), std::string::npos) << unknown;
  EXPECT_NE(error_of([] { Spec::parse("snapkv:windw=3"); }).find("did you mean window?"), std::string::npos);
  EXPECT_NE(error_of([] { Spec::parse("snapkv:window=0"); }).find("1 to 65536"), std::string::npos);
  EXPECT_NE(error_of([] { Spec::parse("snapkv:window=x"); }).find("window=x"), std::string::npos);
  EXPECT_NE(error_of([] { Spec::parse("snapkv:pool=min"); }).find("max|mean"), std::string::npos);
  EXPECT_NE(error_of([] { Spec::parse("snapkv:kernel=6"); }).find("odd"), std::string::npos);
  EXPECT_NE(error_of([] { Spec::parse("snapkv:window=3,window=4"); }).find("twice"), std::string::npos);
  for (const char* text : {"", ":", "(", ")", "snapkv(", "snapkv)", "snapkv:", "snapkv:window",
                           "snapkv:window=", "snapkv,", "ada(snapkv", "a(b))", "=", ","}) {
    EXPECT_NE(error_of([&] { Spec::parse(text); }), "") << text;
  }
}

TEST(Spec, depth_and_length_are_bounded) {
  const auto registry = with_wrapper();
  const auto nested = [](int n) {
    std::string text = "snapkv";
    for (int i = 0; i < n; ++i) text = "twice(" + text + ")";
    return text;
  };
  EXPECT_EQ(error_of([&] { Spec::parse(nested(7), registry); }), "");
  EXPECT_NE(error_of([&] { Spec::parse(nested(8), registry); }), "");
  EXPECT_NE(error_of([&] { Spec::parse(std::string(100000, '('), registry); }).find("100000"), std::string::npos);
}

TEST(BudgetText, reads_and_prints) {
  for (const char* text : {"512", "10%", "2.5%", "100%", "64MiB", "1GiB", "12KiB"})
    EXPECT_EQ(Budget::parse(text).print(), text);
  EXPECT_EQ(error_of([] { Budget::parse("64MB"); }),
            "the budget '64MB' has the unit 'MB', expected %, KiB, MiB or GiB: give entries per KV head (512), a share "
            "(10%) or bytes (64MiB)");
  EXPECT_NE(error_of([] { Budget::parse("10B"); }).find("has the unit 'B'"), std::string::npos);
  for (const char* text : {"abc", "5%%", "5 MB", "5MBMiB", "0x10"})
    EXPECT_NE(error_of([&] { Budget::parse(text); }).find("is not a number"), std::string::npos) << text;
  for (const char* text :
       {"0", "-5", "", "abc", "0%", "101%", "1e400", "nan", "inf", "1.5", "5 MiB", "MiB", "1e18", "-1MiB", "5TiB"}) {
    EXPECT_NE(error_of([&] { Budget::parse(text); }).find(std::string("'") + text + "'"), std::string::npos) << text;
  }
}

TEST(BudgetText, entries) {
  EXPECT_EQ(Budget::parse("512").entries(10000, 260 * 90), 512);
  EXPECT_EQ(Budget::parse("10%").entries(1009, 260 * 90), 100);
  EXPECT_EQ(Budget::parse("1MiB").entries(10000, 260 * 90), 1048576 / (260 * 90));
}

TEST(KvTypeText, reads_and_prints) {
  for (const char* text : {"f32", "f16", "bf16", "q8_0", "q4_0", "q8_0/f16"})
    EXPECT_EQ(KvType::parse(text).print(), text);
  EXPECT_EQ(KvType::parse("f16/f16").print(), "f16");
  EXPECT_NE(error_of([] { KvType::parse("q5_0"); }).find("f32, f16, bf16, q8_0, q4_0"), std::string::npos);
}

TEST(Methods, are_listed_with_parts_and_options) {
  const auto methods = list_methods();
  ASSERT_EQ(methods.size(), policy::built_in().presets.size());
  for (const auto& method : methods) {
    EXPECT_FALSE(method.summary.empty());
    EXPECT_FALSE(method.parts.empty());
    for (const auto& option : method.options) EXPECT_FALSE(option.effect.empty());
  }
}

}  // namespace
}  // namespace winnow
