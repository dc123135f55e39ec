#pragma once

#include "cli/batch.h"
#include "cli/question.h"

namespace kernelpath::cli {

// The lines of llm-validate --batch: op "validate" of one engine, or a model with options.
class ValidateAnswers : public BatchAnswers {
 public:
  ValidateAnswers(const Invocation& invocation, const ExternalModels& external)
      : invocation_(invocation), external_(external) {}

  // "out" has exactly the fields of the recorded answers; "rule" is the deciding rule.
  Result<std::string> answer_in(const json::Value& request, const json::Value& in) override;
  // The validate document.
  Result<std::string> answer_model(const Settings& settings, const std::string& model,
                                   int& exit_code) override;

 private:
  const Invocation& invocation_;
  const ExternalModels& external_;
};

}  // namespace kernelpath::cli
