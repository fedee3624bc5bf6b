// SPDX-License-Identifier: Apache-2.0
#include "winnow/sampling.h"

#include <spdlog/fmt/fmt.h>

#include "base/log.h"
#include "base/printable.h"
#include "engine/model_impl.h"
#include "winnow/generate.h"

namespace winnow {

SamplingOptions SamplingChoice::over(SamplingOptions options) const {
  options.temperature = temperature.value_or(options.temperature);
  options.top_k = top_k.value_or(options.top_k);
  options.top_p = top_p.value_or(options.top_p);
  options.min_p = min_p.value_or(options.min_p);
  options.repeat_penalty = repeat_penalty.value_or(options.repeat_penalty);
  options.seed = seed.value_or(options.seed);
  return options;
}

SamplingOptions usual_sampling() {
  SamplingOptions out;
  out.temperature = 0.8F;  // the other defaults are llama.cpp's, too
  return out;
}

SamplingOptions default_sampling(const Model& model) {
  const auto& keys = model.impl().sampling;
  for (const auto& why : keys.wrong) log().warn("{}: ignored", why);
  if (!keys.unused.empty())
    log().info("{} recommends sampling that winnow does not support: {}", model.info().path,
               brief(fmt::format("{}", fmt::join(keys.unused, ", "))));
  return keys.choice.over(usual_sampling());
}

}  // namespace winnow
