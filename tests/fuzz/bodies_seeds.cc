// SPDX-License-Identifier: Apache-2.0
// Bodies for each route that takes one, with all fields that it knows.
#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  write_seed(folder / "chat",
             "/v1/chat/completions\n"
             R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},)"
             R"({"type":"text","text":"b?"}]}],"max_completion_tokens":3,"temperature":0.5,"top_p":0.9,"top_k":5,)"
             R"("min_p":0.1,"seed":1,"stop":["x","y"],"n":2,"presence_penalty":1,"frequency_penalty":-1,)"
             R"("repetition_penalty":1.1,"logit_bias":{"5":-100},"logprobs":true,"top_logprobs":2,"stream":true,)"
             R"("stream_options":{"include_usage":true,"continuous_usage_stats":true},"user":"u","cache_salt":"s",)"
             R"("winnow":{"kv":"snapkv:window=2","budget":8,"kv_type":"q8_0","protocol":"question-agnostic"}})");
  write_seed(folder / "continued",
             "/v1/chat/completions\n"
             R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],)"
             R"("continue_final_message":true,"add_generation_prompt":false,"max_tokens":2,"priority":3})");
  write_seed(folder / "asked",
             "/v1/chat/completions\n"
             R"({"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_object"},"tools":[],)"
             R"("tool_choice":"auto","max_tokens":2,"reasoning_effort":"low","thinking_token_budget":1})");
  const std::string message =
      R"({"system":[{"type":"text","text":"x-anthropic-billing-header: c=1"},{"type":"text","text":"s"}],"messages":[)"
      R"({"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"h"},)"
      R"({"type":"text","text":"b"},{"type":"tool_use","id":"t","name":"f","input":{"z":1,"a":[]}}]},{"role":"user",)"
      R"("content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"c"}]}],)"
      R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object"}},{"type":"web_search","name":"w"}],)"
      R"("tool_choice":{"type":"auto","disable_parallel_tool_use":true},"max_tokens":2,"stop_sequences":["x"],)"
      R"("thinking":{"type":"enabled","budget_tokens":9},"metadata":{"user_id":"u"},"stream":true,"top_k":3})";
  write_seed(folder / "message", "/v1/messages\n" + message);
  write_seed(folder / "count", "/v1/messages/count_tokens\n" + message);
  write_seed(
      folder / "response",
      "/v1/responses\n"
      R"({"instructions":"s","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},)"
      R"({"type":"reasoning","summary":[{"type":"summary_text","text":"h"}],"content":[]},{"type":"message",)"
      R"("role":"assistant","content":[{"type":"output_text","text":"b"}]},{"type":"function_call","call_id":"t",)"
      R"("name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"t","output":"c"},{"type":"other"}],)"
      R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"custom","name":"w"}],)"
      R"("tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]},)"
      R"("parallel_tool_calls":false,"max_output_tokens":2,"include":["message.output_text.logprobs"],)"
      R"("top_logprobs":1,"reasoning":{"effort":"low"},"store":true,"metadata":{"a":"b"},"stream":true})");
  write_seed(folder / "response-text",
             "/v1/responses\n"
             R"({"input":"a","max_output_tokens":2,"text":{"format":{"type":"json_schema","strict":true,)"
             R"("schema":{"enum":[1]}}},"reasoning":{"effort":"none"},"thinking_budget_tokens":0})");
  write_seed(folder / "begun",
             "/v1/messages\n"
             R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"max_tokens":2,)"
             R"("output_config":{"format":{"type":"json_schema","schema":{"enum":[1]}}},"winnow":{"kv":"full"}})");
  write_seed(folder / "completion",
             "/v1/completions\n"
             R"({"prompt":["a",""],"max_tokens":2,"min_tokens":1,"ignore_eos":true,"stop_token_ids":[3],"logprobs":1,)"
             R"("echo":true,"winnow":{"kv":"streaming-llm","budget":"50%"}})");
  write_seed(folder / "tokens",
             "/v1/completions\n"
             R"({"prompt":[[4,5,6],[7]],"max_tokens":1,"stream":true})");
  write_seed(folder / "embeddings",
             "/v1/embeddings\n"
             R"({"input":["a",[4,5]],"encoding_format":"base64","dimensions":3,"winnow":{"pooling":"last"}})");
  write_seed(folder / "infill",
             "/infill\n"
             R"({"input_prefix":"a","input_suffix":"b","prompt":"c","input_extra":[{"filename":"d","text":"e"}],)"
             R"("n_predict":2,"stream":true})");
  write_seed(folder / "tokenize",
             "/tokenize\n"
             R"({"content":"a\u00e9\ud834\udd1e","add_special":true,"with_pieces":true})");
  write_seed(folder / "detokenize",
             "/detokenize\n"
             R"({"tokens":[4,5,6]})");
  write_seed(folder / "template",
             "/apply-template\n"
             R"({"messages":[{"role":"user","content":"a"}]})");
  write_seed(folder / "deep", "/v1/completions\n{\"prompt\":[[[[[[[[1e999,-0,\"\\ud800\",\"\xff\"]]]]]]]]}");
}
