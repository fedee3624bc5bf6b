// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "policy/views.h"
#include "winnow/policy/registry.h"

/// A function for each preset, in the file of that name.
namespace winnow::policy::methods {

Preset ada_pyramid();
Preset ada_snapkv();
Preset ahakv();
Preset cam();
Preset compactor();
Preset cur();
Preset dapq();
Preset ems();
Preset expected_attention();
Preset finch();
Preset full();
Preset h2o();
Preset infllm();
Preset keydiff();
Preset knorm();
Preset kvzap();
Preset kvzip();
Preset lagkv();
Preset nacl();
Preset pyramidkv();
Preset qfilter();
Preset quest();
Preset r_kv();
Preset random();
Preset sage_kv();
Preset snapkv();
Preset streaming_llm();
Preset tova();
Preset triattention();

/// All built-in methods, in the order in which they are listed.
inline std::vector<Preset> all() {
  return {
      full(),
      streaming_llm(),
      with_positions(h2o()),
      with_positions(tova()),
      with_positions(snapkv()),
      finch(),
      with_positions(pyramidkv()),
      with_positions(nacl()),
      with_positions(ada_snapkv()),
      with_positions(ada_pyramid()),
      with_positions(sage_kv()),
      with_positions(ahakv()),
      ems(),
      with_positions(cam()),
      quest(),
      infllm(),
      with_positions(random()),
      with_positions(knorm()),
      with_positions(keydiff()),
      with_positions(expected_attention()),
      with_positions(kvzip()),
      with_positions(kvzap()),
      with_positions(dapq()),
      with_positions(compactor()),
      with_positions(lagkv()),
      with_positions(cur()),
      with_positions(qfilter()),
      with_positions(triattention()),
      with_positions(r_kv()),
  };
}

}  // namespace winnow::policy::methods
