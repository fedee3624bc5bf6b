// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eval/tasks.h"

namespace winnow::eval {

/// Each adds its tasks to the list.
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

/// Whether a name is that of a file of RULER's generator, ruler/NAME.jsonl in the data folder, …
bool is_ruler_file(const std::string& name, const TaskOptions& options);
/// … whose name begins with the type.
Task ruler_file(const std::string& name, const TaskOptions& options);

/// Whether a name is documents/ or documents-fidelity/ and a file of questions over documents, multi-doc/NAME.jsonl in
/// the data folder.
bool is_documents_file(const std::string& name, const TaskOptions& options);
Task documents_file(const std::string& name, const TaskOptions& options);

/// Samples on which methods are compared with the full cache: its greedy answer of 64 tokens is forced, or of as many
/// as the user says. Ids and the label "kind" then have their number.
Task fidelity_of(std::vector<Sample> samples, const TaskOptions& options);

/// A file of samples: one JSON object a line with text, question (or input), outputs, and maybe documents, id, metric,
/// classes, max_tokens.
Task custom_task(const std::string& path, const TaskOptions& options);

}  // namespace winnow::eval
