// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/views.h"
#include "winnow/policy/registry.h"

/// One function for each preset, each in the file of its name.
namespace winnow::policy::methods {

Preset ada_pyramid();
Preset ada_snapkv();
Preset ahakv();
Preset cam();
Preset dapq();
Preset compactor();
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
Preset quest();
Preset r_kv();
Preset random();
Preset sage_kv();
Preset streaming_llm();
Preset tova();
Preset triattention();
Preset snapkv();

}  // namespace winnow::policy::methods
