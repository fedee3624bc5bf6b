// SPDX-License-Identifier: Apache-2.0
#include "winnow/recommended.h"

namespace winnow {

Spec recommended(Protocol protocol) {
  return Spec::parse(protocol == Protocol::aware ? "span(lookahead(snapkv):kernel=1,rows=max)" : "kvzip:rank=model");
}

Spec spec_for(std::string_view text, Protocol protocol) {
  return text == kAuto ? recommended(protocol) : Spec::parse(text);
}

}  // namespace winnow
