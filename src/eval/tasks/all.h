// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eval/tasks.h"

namespace winnow::eval {

/// Each function adds its tasks to the list.
void add_longbench(std::vector<TaskInfo>& to);
void add_niah(std::vector<TaskInfo>& to);
void add_needles(std::vector<TaskInfo>& to);
void add_ruler(std::vector<TaskInfo>& to);
void add_lines(std::vector<TaskInfo>& to);
void add_kv_retrieval(std::vector<TaskInfo>& to);
void add_short(std::vector<TaskInfo>& to);
void add_perplexity(std::vector<TaskInfo>& to);
void add_documents(std::vector<TaskInfo>& to);
void add_fidelity(std::vector<TaskInfo>& to);
void add_attention(std::vector<TaskInfo>& to);
void add_efficiency(std::vector<TaskInfo>& to);
void add_throughput(std::vector<TaskInfo>& to);

/// True if `name` is ruler/NAME and the data folder has ruler/NAME.jsonl, a file of RULER's generator.
bool is_ruler_file(const std::string& name, const TaskOptions& options);
/// The task of such a file. NAME begins with the type.
Task ruler_file(const std::string& name, const TaskOptions& options);

/// True if a name is documents/ or documents-fidelity/ followed by multi-doc/NAME, and the data folder has
/// multi-doc/NAME.jsonl.
bool is_documents_file(const std::string& name, const TaskOptions& options);
Task documents_file(const std::string& name, const TaskOptions& options);

/// A task that compares methods with the full cache on its greedy answer of 64 tokens, or as many as the user sets.
/// Adds the number to ids and to the label "kind".
Task fidelity_of(std::vector<Sample> samples, const TaskOptions& options);

/// A file of samples: one JSON object a line with text, question (or input) and outputs, and optionally documents, id,
/// metric, classes, max_tokens.
Task custom_task(const std::string& path, const TaskOptions& options);

}  // namespace winnow::eval
