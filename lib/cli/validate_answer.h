#pragma once

#include "cli/model_input.h"
#include "cli/validate_question.h"
#include "report/validate_document.h"

#include <string>

namespace kernelpath::cli {

// Judges one model on every engine of the question, or, with a null `model`, the combination of
// options alone. Errors: those of engine_arguments().
Result<report::ValidatedInput> validate_input(const ValidateQuestion& question,
                                              const LoadedModel* model);

// "h100-sxm (sm90, 80 GiB)".
std::string device_text(const hardware::Device& device);

}  // namespace kernelpath::cli
