// SPDX-License-Identifier: Apache-2.0
// Schemas with every keyword, with circular references, and invalid ones.
#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  write_seed(
      folder / "object",
      R"({"type":"object","title":"x","properties":{"a":{"type":"string","minLength":2,"maxLength":300},)"
      R"("b":{"type":["integer","null"],"minimum":-5,"exclusiveMaximum":700},"c\"":{"enum":["x",1,null,{"y":[]}]}},)"
      R"("required":["b"],"additionalProperties":false})");
  write_seed(folder / "array", R"({"items":{"const":"\u00e9\n"},"minItems":1,"maxItems":200})");
  write_seed(folder / "numbers", R"({"type":"number","exclusiveMinimum":-12,"maximum":34})");
  write_seed(folder / "circle",
             R"({"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},true]},"b":{"items":{"$ref":"#"}}}})");
  write_seed(folder / "itself", R"({"anyOf":[{"$ref":"#"}]})");
  write_seed(folder / "wrong", R"({"type":"thing","pattern":"a"})");
}
