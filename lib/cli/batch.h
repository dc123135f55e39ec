#pragma once

#include "base/result.h"
#include "cli/program.h"
#include "json/value.h"

#include <string>

namespace kernelpath::cli {

// What a program answers to the lines of --batch. Texts are JSON on one line.
class BatchAnswers {
 public:
  virtual ~BatchAnswers() = default;

  // The members of the answer beside "id", to a line that has "in": "out":{…}.
  virtual Result<std::string> answer_in(const json::Value& request, const json::Value& in) = 0;

  // The document of a model, under the line's settings. A finding raises `exit_code`.
  virtual Result<std::string> answer_model(const Settings& settings, const std::string& model,
                                           int& exit_code) = 0;
};

// --batch: one JSON request a line, one JSON answer a line, in order and as they come. A line that
// cannot be answered gets an error and the batch goes on. Returns the exit code: 1 if any line was
// not answered.
int run_batch(const Invocation& invocation, BatchAnswers& answers);

}  // namespace kernelpath::cli
