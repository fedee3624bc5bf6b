// SPDX-License-Identifier: Apache-2.0
#include "winnow/recommended.h"

namespace winnow {

Spec recommended(Protocol protocol) {
  if (protocol == Protocol::agnostic) return Spec::parse("kvzip:rank=model");
  return Spec::parse(
      "refit(ada(kvzip(span(snapkv:window=question,rows=max,kernel=1,gqa=max):power=1.5)):floor=0,over=model)");
}

Spec spec_for(std::string_view text, Protocol protocol) {
  return text == kAuto ? recommended(protocol) : Spec::parse(text);
}

}  // namespace winnow
