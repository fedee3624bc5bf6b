// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "eval/tasks.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/session.h"

namespace winnow::eval {

/// One thread and f32, so that results are the same on every machine.
inline SessionOptions single() {
  SessionOptions out;
  out.threads = 1;
  out.precision = Precision::f32;
  return out;
}

/// A model whose tokens are single bytes, and a folder for a task's files.
class TaskData {
 public:
  TaskData() {
    test::TinyModel tiny;
    tiny.ctx_train = 1 << 16;
    test::write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    options_.data = folder_ / ".";
    options_.on_left_out = [this](const std::string& sentence) { left_out_.push_back(sentence); };
    options_.on_bad_line = [this](const std::string& sentence) { bad_lines_.push_back(sentence); };
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }

  std::vector<Task> make(const std::string& name) const { return make_tasks(std::vector{name}, *model_, options_); }
  /// The samples of a name that stands for one task.
  std::vector<Sample> samples(const std::string& name) const { return make(name).front().samples; }

  const std::shared_ptr<const Model>& model() const { return model_; }
  TaskOptions& options() { return options_; }
  const std::vector<std::string>& left_out() const { return left_out_; }
  const std::vector<std::string>& bad_lines() const { return bad_lines_; }

 private:
  test::TempFolder folder_;
  std::shared_ptr<const Model> model_;
  TaskOptions options_;
  std::vector<std::string> left_out_;
  std::vector<std::string> bad_lines_;
};

}  // namespace winnow::eval
