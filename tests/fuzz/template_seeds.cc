// SPDX-License-Identifier: Apache-2.0
// llama.cpp's collection of templates, and small templates that use many features of Jinja, each with an answer.
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  const std::string answer =
      std::string(1, '\0') +
      "<think>a</think>b<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"c\"}}\n</tool_call>";
  for (const auto& entry : std::filesystem::directory_iterator(WINNOW_TEMPLATES)) {
    if (entry.path().extension() != ".jinja") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    write_seed(folder / entry.path().stem(), std::string(std::istreambuf_iterator<char>(file), {}) + answer);
  }
  int number = 0;
  for (const char* text :
       {"{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{% endfor %}",
        "{% macro f(x, y=1) %}{{ x * y }}{% endmacro %}{% call f('a') %}{% endcall %}{{ f('a', y=3) }}",
        "{% set n = namespace(x=[]) %}{% for m in messages %}{% set n.x = n.x + [m.content] %}{% endfor %}{{ n.x | "
        "join(' ') }}",
        "{{ messages | map(attribute='content') | list | tojson(indent=2) }}{{ tools | tojson }}{{ [3, 1] | sort | "
        "first }}",
        "{% for m in messages if m.role != 'tool' %}{{ m.content.split('.')[0] | replace('a', 'b') | upper }}{% else "
        "%}x{% endfor %}",
        "{{ 'abc'[::-1] ~ 'a{}'.format(1) ~ ('x' | indent(2, true)) }}{{ 5 is divisibleby(2) }}{{ {'a': 1}.items() | "
        "list }}"})
    write_seed(folder / std::to_string(number++), text + answer);
}
