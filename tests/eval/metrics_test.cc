// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/metrics/metric.h"
#include "eval/sample.h"

namespace winnow::eval {
namespace {

/// Scores of the same answers by the Python packages that LongBench's scripts use (tools/metrics).
const nlohmann::json& goldens() {
  static const auto out = nlohmann::json::parse(std::ifstream(GOLDENS));
  return out;
}

using Metric = std::function<double(const std::string& answer, const std::string& reference)>;

struct Named {
  const char* name;
  Metric metric;
};

void PrintTo(const Named& named, std::ostream* out) { *out << named.name; }

double class_score(const std::string& answer, const std::string& right) {
  return classification(answer, right, goldens()["classes"].get<std::vector<std::string>>());
}

class MetricTest : public testing::TestWithParam<Named> {};

TEST_P(MetricTest, equals_the_official_scripts) {
  const auto& cases = goldens().at(GetParam().name);
  EXPECT_GE(cases.size(), 20U);
  for (const auto& one : cases) {
    const auto answer = one[0].get<std::string>();
    const auto reference = one[1].get<std::string>();
    EXPECT_NEAR(GetParam().metric(answer, reference), one[2].get<double>(), 1e-12) << answer << " | " << reference;
  }
}

INSTANTIATE_TEST_SUITE_P(longbench, MetricTest,
                         testing::Values(Named{"qa_f1", qa_f1}, Named{"qa_f1_zh", qa_f1_zh}, Named{"rouge_l", rouge_l},
                                         Named{"rouge_l_zh", rouge_l_zh}, Named{"classification", class_score},
                                         Named{"retrieval", retrieval}, Named{"retrieval_zh", retrieval},
                                         Named{"count", count}, Named{"code_similarity", code_similarity},
                                         Named{"last_number", last_number}),
                         [](const auto& test) { return std::string(test.param.name); });

/// Metrics that compare an answer with all references of a sample.
class ReferencesTest : public testing::TestWithParam<const char*> {};

TEST_P(ReferencesTest, equal_rulers_scripts) {
  const auto& cases = goldens().at(GetParam());
  EXPECT_GE(cases.size(), 20U);
  for (const auto& one : cases) {
    Sample sample;
    sample.metric = parse_metric(GetParam());
    sample.references = one[1].get<std::vector<std::string>>();
    EXPECT_NEAR(score(sample, one[0].get<std::string>()), one[2].get<double>(), 1e-12) << one;
  }
}

INSTANTIATE_TEST_SUITE_P(ruler, ReferencesTest, testing::Values("contains", "contains_any"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Paragraphs, are_the_numbers_in_an_answer) {
  EXPECT_EQ(paragraphs_of("Paragraph 12, or 3?"), (std::vector<double>{12, 3}));
  EXPECT_EQ(paragraphs_of("段落5"), std::vector<double>{5});
  EXPECT_TRUE(paragraphs_of("none").empty());
  const auto wrong = [](const std::vector<double>& named, const std::vector<double>& right) {
    const auto found = misplaced(named, right);
    return std::vector{found.earlier, found.later};
  };
  EXPECT_EQ(wrong({3, 12, 5, 30}, {5}), (std::vector{0.25, 0.5}));
  EXPECT_EQ(wrong({3, 12, 5, 30}, {5, 12}), (std::vector{0.25, 0.25}));
  EXPECT_EQ(wrong({}, {5}), (std::vector{0.0, 0.0}));
  EXPECT_EQ(wrong({3}, {}), (std::vector{0.0, 0.0}));
}

TEST(MetricTest, invalid_bytes_are_no_crash) {
  EXPECT_EQ(qa_f1("\xff\xfe", "x"), 0);
  EXPECT_EQ(rouge_l("\xc3", "x"), 0);
  EXPECT_EQ(code_similarity("\xf0\x9f", "x"), 0);
}

TEST(LongestPart, is_a_share_of_the_reference) {
  EXPECT_NEAR(longest_part("It is 739 or 825.", "7391825"), 3.0 / 7, 1e-12);
  EXPECT_EQ(longest_part("call Merge_Rows(beta, 42).", "merge_rows(beta, 42)"), 1);
  EXPECT_NEAR(longest_part("8f3a91bc 40de", "8f3a91bc-40de"), 8.0 / 13, 1e-12);
  EXPECT_NEAR(longest_part("\u00dcbel", "\u00fcber"), 3.0 / 4, 1e-12) << "characters, not bytes";
  EXPECT_EQ(longest_part("", "x"), 0);
  EXPECT_EQ(longest_part("x", ""), 0);
}

TEST(LongestPart, of_several_references_is_the_mean) {
  Sample sample;
  sample.references = {"abcd", "xyz"};
  sample.metric = parse_metric("longest_part");
  EXPECT_NEAR(score(sample, "ab z"), (2.0 / 4 + 1.0 / 3) / 2, 1e-12);
}

}  // namespace
}  // namespace winnow::eval
