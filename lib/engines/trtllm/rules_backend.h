#pragma once

#include "engines/engine.h"
#include "engines/resolution.h"
#include "engines/step_draft.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

inline constexpr std::string_view kProject = "TensorRT-LLM";  // of every step's source

// Every rule of TensorRT-LLM's attention side: dispatch, construction, inner kernels, KV cache,
// ModelConfig. A step's rule is "TRT-" followed by the id that the engine's recorded answers use.
std::span<const RuleInfo> backend_rules();

// The rule called `id`, with or without "TRT-" and with or without the ":detail" of an error code
// ("MLA-GEOMETRY:q_lora_rank"); null pointer if there is none.
const RuleInfo* find_backend_rule(std::string_view id);

// A rule is an id of backend_rules(), with or without "TRT-".
using StepDraft = StepDraftOf<Stage::kFallback>;

// Appends a step, with the source of its rule. Asserts that the table holds the rule.
void append_step(StepDraft draft, std::vector<Step>& steps);

// The step of an error that the engine raises: the rule is the code's, the severity an error.
void append_error_step(const EngineError& error, Stage stage, std::string candidate,
                       std::vector<Step>& steps);

}  // namespace kernelpath::engines::trtllm
