# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's tests of its server (tools/server/tests/unit), and the tests here that correspond to them.

Each case is in this file, in a file beside it, or nowhere; then CASES gives the reason. This file has the cases that no
other file tests.
"""

import json
import pathlib
import threading

import pytest
from service import Server, sentence

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
TEXT = "some words to read, and then some more of them " * 4
NOT_HERE = "not here: "

CASES = {
    "basic": {
        "test_server_start_simple": "http_test.test_health_answers_while_the_engine_is_busy",
        "test_server_multiple_addresses": NOT_HERE + "it listens on one address",
        "test_server_props": "texts_test.test_properties_and_slots",
        "test_server_models": "texts_test.test_the_model_is_described",
        "test_server_slots": "texts_test.test_slots_show_what_runs_and_no_texts",
        "test_load_split_model": NOT_HERE + "a model is one file",
        "test_no_ui": NOT_HERE + "the page cannot be switched off",
        "test_server_model_aliases_and_tags": NOT_HERE + "a model has one name",
    },
    "chat_completion": {
        "test_chat_completion": "answers_test.test_a_chat_about_a_text_is_that_of_run",
        "test_chat_completion_cached_tokens": "answers_test.test_a_text_that_is_kept_gives_the_same_answers",
        "test_chat_completion_stream": "answers_test.test_a_chat_stream_has_its_parts_in_order",
        "test_chat_completion_with_openai_library": "openai_client_test.test_an_answer_and_its_usage",
        "test_chat_template": "texts_test.test_a_template_is_applied",
        "test_chat_template_assistant_prefill": "model_test.test_a_message_is_gone_on_with",
        "test_chat_template_continue_final_message_vllm_compat": "model_test.test_a_message_is_gone_on_with",
        "test_chat_template_continue_final_message_mutual_exclusion": "llama_cases_test.test_a_message_is_ended_or_gone_on_with",
        "test_apply_chat_template": "texts_test.test_a_template_is_applied",
        "test_completion_with_response_format": "schema_test.test_json_objects",
        "test_completion_with_json_schema": "schema_test.test_answers_are_what_their_schemas_say",
        "test_completion_with_grammar": NOT_HERE + "a grammar is given as a JSON schema",
        "test_completion_with_invalid_grammar": NOT_HERE + "a grammar is given as a JSON schema",
        "test_invalid_chat_completion_req": "fields_test.test_a_message_that_cannot_be_is_named",
        "test_chat_completion_with_timings_per_token": "llama_cases_test.test_timings_add_up",
        "test_logprobs": "answers_test.test_log_probabilities_are_those_of_run",
        "test_logprobs_stream": "openai_client_test.test_log_probabilities_of_a_chat",
        "test_logit_bias": "answers_test.test_biases_rule",
        "test_context_size_exceeded": "fields_test.test_a_prompt_over_the_context",
        "test_context_size_exceeded_stream": "llama_cases_test.test_a_stream_over_the_context_does_not_begin",
        "test_return_progress": NOT_HERE + "/slots tells how far a prompt has been read",
        "test_chat_completions_multiple_choices": "answers_test.test_several_answers_differ_by_their_seeds",
        "test_chat_completions_token_count": "answers_test.test_what_comes_before_the_last_question_is_compressed_in_stages",
        "test_verbose_debug": NOT_HERE + "answers do not tell prompts",
    },
    "completion": {
        "test_completion": "answers_test.test_a_completion_is_that_of_run",
        "test_completion_stream": "answers_test.test_a_stream_is_the_whole_in_pieces",
        "test_completion_stream_vs_non_stream": "answers_test.test_a_stream_is_the_whole_in_pieces",
        "test_completion_with_openai_library": "openai_client_test.test_an_answer_and_its_usage",
        "test_completion_stream_with_openai_library": "openai_client_test.test_a_stream_is_the_answer_in_pieces",
        "test_completion_stream_with_openai_library_stops": "openai_client_test.test_a_stop_text_ends_a_stream_before_it",
        "test_consistent_result_same_seed": "llama_cases_test.test_the_same_seed_gives_the_same_answer",
        "test_different_result_different_seed": "llama_cases_test.test_other_seeds_give_other_answers",
        "test_consistent_result_different_batch_size": "llama_cases_test.test_an_answer_does_not_depend_on_how_many_are_made_at_once",
        "test_cache_vs_nocache_prompt": "llama_cases_test.test_a_text_that_was_found_is_the_text_that_was_read",
        "test_nocache_long_input_prompt": "llama_cases_test.test_a_text_that_was_found_is_the_text_that_was_read",
        "test_json_prompt_no_mtmd": "fields_test.test_a_prompt_that_cannot_be_is_named",
        "test_json_prompt_mtm_error_when_not_supported": "fields_test.test_a_prompt_that_cannot_be_is_named",
        "test_completion_with_tokens_input": "answers_test.test_prompts_of_tokens",
        "test_completion_parallel_slots": "ending_test.test_many_clients_at_once",
        "test_completion_unified": "ending_test.test_what_never_fits_into_the_memory_is_refused",
        "test_completion_response_fields": NOT_HERE + "answers have all fields",
        "test_n_probs": "answers_test.test_log_probabilities_are_those_of_run",
        "test_n_probs_stream": "openai_client_test.test_log_probabilities_of_a_chat",
        "test_n_probs_post_sampling": NOT_HERE + "probabilities are the model's, before sampling",
        "test_n_probs_post_backend_sampling": NOT_HERE + "probabilities are the model's, before sampling",
        "test_logit_bias": "answers_test.test_biases_rule",
        "test_cancel_request": "http_test.test_a_client_that_goes_before_it_is_answered_at_all",
        "test_completion_prompt_cache": "answers_test.test_a_text_that_is_kept_gives_the_same_answers",
    },
    "ctx_shift": {
        "test_ctx_shift_enabled": NOT_HERE + "a method with a budget takes its place",
        "test_ctx_shift_disabled_short_prompt": "llama_cases_test.test_an_answer_ends_where_the_context_does",
        "test_ctx_shift_disabled_long_prompt": "fields_test.test_a_prompt_over_the_context",
        "test_ctx_shift_disabled_stream": "llama_cases_test.test_an_answer_ends_where_the_context_does",
    },
    "ignore_eos": {
        "test_ignore_eos_populates_logit_bias": "answers_test.test_an_end_is_ignored_or_waited_for",
        "test_ignore_eos_false_no_logit_bias": "answers_test.test_an_end_is_ignored_or_waited_for",
    },
    "tokenize": {
        "test_tokenize_detokenize": "texts_test.test_tokens_and_back",
        "test_tokenize_with_bos": "texts_test.test_tokens_and_back",
        "test_tokenize_with_pieces": NOT_HERE + "/detokenize gives a token's text",
    },
    "metrics": {
        "test_metrics_disabled": NOT_HERE + "/metrics is always there",
        "test_metrics_prometheus_format": "metrics_test.test_all_of_vllms_names_are_there",
        "test_metrics_prompt_processed_and_cached": "metrics_test.test_texts_that_are_kept",
        "test_metrics_predicted_total_matches_requests": "metrics_test.test_counters_are_what_usage_says",
        "test_metrics_generation_rate_excludes_first_token": "llama_cases_test.test_timings_add_up",
        "test_metrics_timings_are_finite": "llama_cases_test.test_timings_add_up",
        "test_metrics_timings_on_prompt_progress": NOT_HERE + "/slots tells how far a prompt has been read",
        "test_metrics_slots_idle_after_completion": "metrics_test.test_gauges_while_requests_run_and_after",
        "test_metrics_embedding_prompt_is_counted": NOT_HERE + "there are no embeddings",
    },
    "security": {
        "test_access_public_endpoint": "http_test.test_keys",
        "test_access_static_assets_without_api_key": NOT_HERE + "the page has no assets",
        "test_incorrect_api_key": "http_test.test_keys",
        "test_correct_api_key": "http_test.test_keys",
        "test_correct_api_key_anthropic_header": "http_test.test_keys",
        "test_openai_library_correct_api_key": "openai_client_test.test_a_key",
        "test_cors_options": "http_test.test_pages_of_this_machine_may_use_it_and_no_others",
        "test_cors_origins_localhost_reflects": "http_test.test_pages_of_this_machine_may_use_it_and_no_others",
        "test_cors_origins_localhost_rejects": "http_test.test_pages_of_this_machine_may_use_it_and_no_others",
        "test_cors_origins_defaults_to_localhost_with_tools_enabled": "http_test.test_pages_of_this_machine_may_use_it_and_no_others",
        "test_cors_proxy_only_forwards_explicit_proxy_headers": NOT_HERE + "there is no proxy",
        "test_local_media_file": "fields_test.test_a_message_that_cannot_be_is_named",
    },
    "slot_save": {
        "test_slot_save_restore": "sessions_test.test_a_session_survives_kill_9_and_goes_on_the_same",
        "test_slot_restore_legacy_token_list": NOT_HERE + "there is no older format",
        "test_slot_erase": NOT_HERE + "a request's memory is freed at its end",
    },
    "template": {
        "test_reasoning": NOT_HERE + "models that reason are not told from others",
        "test_date_inside_prompt": NOT_HERE + "templates are those that libllama knows",
        "test_add_generation_prompt": "texts_test.test_a_template_is_applied",
    },
}


@pytest.mark.parametrize("place", sorted({place for cases in CASES.values() for place in cases.values() if not place.startswith(NOT_HERE)}))
def test_what_the_list_names_is_there(place):
    name, _, case = place.partition(".")
    text = (pathlib.Path(__file__).parent / f"{name}.py").read_text()
    assert f"def {case}(" in text


def completion(**fields):
    return {"prompt": TEXT, "max_tokens": 16, "ignore_eos": True, "logprobs": 3, **fields}


SAMPLED = {"temperature": 1.5, "top_k": 0, "seed": 42}


@pytest.mark.parametrize("sampling", [{"temperature": 0}, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("keeping", [{}, {"kv": "snapkv:window=8", "budget": 40}, {"kv": "h2o", "budget": "30%"}], ids=["full", "snapkv", "h2o"])
def test_an_answer_does_not_depend_on_how_many_are_made_at_once(model, keeping, sampling):
    """consistent_result_different_batch_size, exactly: tokens and log probabilities."""
    found = []
    for parallel in (1, 2, 7):
        with Server(model, "--parallel", str(parallel), "--context", "1000") as server:
            replies = []
            threads = [threading.Thread(target=lambda: replies.append(server.good(COMPLETION, completion(winnow=keeping, **sampling))["choices"])) for _ in range(7)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(replies) == 7
            found += replies
    assert all(reply == found[0] for reply in found)


@pytest.mark.parametrize("sampling", [{"temperature": 0}, SAMPLED], ids=["greedy", "sampled"])
def test_a_text_that_was_found_is_the_text_that_was_read(model, sampling):
    """cache_vs_nocache_prompt, exactly: tokens and log probabilities."""
    parts = [{"type": "text", "text": TEXT * 3}, {"type": "text", "text": "and why?"}]
    body = {"messages": [{"role": "user", "content": parts}], "max_tokens": 16, "ignore_eos": True, "logprobs": True, "top_logprobs": 3,
            "winnow": {"kv": "snapkv:window=8", "budget": 40, "protocol": "question-agnostic"}, **sampling}  # fmt: skip
    with Server(model, "--prefix-memory", "0", "--context", "1000") as server:
        read = [server.good(CHAT, body) for _ in range(2)]
    with Server(model, "--context", "1000") as server:
        kept = [server.good(CHAT, body) for _ in range(3)]
    cached = [reply["usage"]["prompt_tokens_details"]["cached_tokens"] for reply in read + kept]
    assert cached[:3] == [0, 0, 0] and cached[3] == cached[4] > 100
    assert all(reply["choices"] == read[0]["choices"] for reply in read + kept)


def test_the_same_seed_gives_the_same_answer(server):
    assert server.good(COMPLETION, completion(**SAMPLED))["choices"] == server.good(COMPLETION, completion(**SAMPLED))["choices"]


def test_other_seeds_give_other_answers(server):
    texts = {server.good(COMPLETION, completion(**{**SAMPLED, "seed": seed}))["choices"][0]["text"] for seed in range(4)}
    assert len(texts) == 4


@pytest.mark.parametrize("tokens", [1, 8])
def test_timings_add_up(server, tokens):
    """The first token comes with the prompt, so rates count the others. Found tokens are not read."""
    reply = server.good(COMPLETION, completion(max_tokens=tokens))
    timings = reply["timings"]
    assert all(value is not None and value >= 0 for value in timings.values())
    assert timings["predicted_n"] == tokens and timings["prompt_n"] + timings["cache_n"] == reply["usage"]["prompt_tokens"]
    assert timings["cache_n"] == reply["usage"]["prompt_tokens_details"]["cached_tokens"] and timings["prompt_n"] > 0
    assert timings["prompt_per_second"] == pytest.approx(timings["prompt_n"] / timings["prompt_ms"] * 1e3)
    if tokens == 1:
        assert timings["predicted_per_second"] == timings["predicted_per_token_ms"] == 0
    else:
        assert timings["predicted_per_second"] == pytest.approx((tokens - 1) / timings["predicted_ms"] * 1e3)
        assert timings["predicted_per_token_ms"] == pytest.approx(timings["predicted_ms"] / (tokens - 1))


def test_an_answer_ends_where_the_context_does(model):
    with Server(model, "--context", "60") as server:
        body = {"prompt": "hello", "max_tokens": 1000, "ignore_eos": True}
        whole = server.good(COMPLETION, body)
        assert whole["usage"]["total_tokens"] == 60 and whole["choices"][0]["finish_reason"] == "length"
        events = server.stream(COMPLETION, body)
        assert "".join(event["choices"][0]["text"] for event in events) == whole["choices"][0]["text"]
        assert [event["choices"][0]["finish_reason"] for event in events][-1] == "length"


def test_a_stream_over_the_context_does_not_begin(model):
    with Server(model, "--context", "60") as server:
        status, headers, reply = server.ask("POST", CHAT, json.dumps({"messages": [{"role": "user", "content": "words " * 50}], "stream": True}))
        error = sentence(json.loads(reply), "exceeds the available context size")
        assert status == 400 and error["code"] == "context_length_exceeded" and headers["Content-Type"] == "application/json"


def test_a_message_is_ended_or_gone_on_with(server):
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "well"}]
    status, reply = server.post(CHAT, {"messages": messages, "continue_final_message": True, "add_generation_prompt": True})
    assert status == 400 and sentence(reply, "continue_final_message", "add_generation_prompt")
