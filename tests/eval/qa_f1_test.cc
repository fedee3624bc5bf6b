#include "eval/metrics/qa_f1.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

struct Case {
  const char* answer;
  const char* reference;
  double f1;  ///< by the official script's formula, computed in Python
};

const Case cases[] = {
    {"Exeter College", "Exeter College", 1.0},
    {"The Exeter college.", "exeter College", 1.0},
    {"He was educated at Exeter College, Oxford.", "Exeter College", 0.4444444444444445},
    {"", "Exeter", 0.0},
    {"the a an", "the", 0.0},
    {"Exeter", "", 0.0},
    {"no", "yes", 0.0},
    {"yes yes yes", "yes", 0.5},
    {"new york new york", "New York", 0.6666666666666666},
    {"well-known", "well known", 0.0},
    {"wellknown", "well-known", 1.0},
    {"May 19th, 1669", "May 19, 1669", 0.6666666666666666},
    {"$5,000", "5000", 1.0},
    {"Über den Wolken", "über wolken", 0.8},
    {"北京 city", "北京", 0.6666666666666666},
    {"北京。", "北京", 0.0},
    {"theatre another", "the atre an other", 0.0},
    {"_under_score_", "underscore", 1.0},
    {"Jean\tPaul\nGetty  III", "Jean Paul Getty", 0.8571428571428571},
    {"a", "A", 0.0},
    {"an apple a day", "apple day", 1.0},
    {"İstanbul", "istanbul", 0.0},
    {"it's", "its", 1.0},
};

TEST(QaF1Test, EqualsTheOfficialFormula) {
  for (const auto& c : cases) {
    const std::vector<std::string> references = {c.reference};
    EXPECT_DOUBLE_EQ(winnow::eval::qa_f1(c.answer, references), c.f1) << c.answer << " | " << c.reference;
  }
}

TEST(QaF1Test, TakesTheBestReference) {
  const std::vector<std::string> references = {"UT", "University of Toronto", "Toronto"};
  EXPECT_DOUBLE_EQ(winnow::eval::qa_f1("the University of Toronto", references), 1.0);
  EXPECT_DOUBLE_EQ(winnow::eval::qa_f1("Toronto", references), 1.0);
  EXPECT_DOUBLE_EQ(winnow::eval::qa_f1("Toronto", {}), 0.0);
}

}  // namespace
