#pragma once

#include "engines/request.h"
#include "engines/resolution.h"
#include "engines/sglang/build.h"
#include "engines/sglang/launch.h"
#include "engines/sglang/request.h"
#include "engines/step_draft.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::sglang {

// A launch after its arguments are resolved, with what its worker builds.
struct Run {
  const Request& request;
  const Launch& launch;
  const GivenArguments& arguments;
  KvStorage storage = {};
  BuiltAttention built = {};
};

using StepDraft = StepDraftOf<Stage::kFinalValue>;
// Appends a step with its rule's source; a rule that no table holds has no file.
void append_step(StepDraft draft, std::vector<Step>& steps);

// The layers that resolve alike, with the bytes of a token in each group.
std::vector<LayerGroup> layer_groups(const Run& run);

// Weights, the pool, bytes of a token and of a sequence, of one rank. Sizes that cannot be told
// stay unset and have a step or a note that says why.
Memory resolve_memory(const Run& run, const std::vector<LayerGroup>& groups,
                      std::vector<Step>& steps);

// What runs beside the target where a draft model is known: its layers, marked as the draft's.
struct DraftRun {
  std::vector<LayerGroup> layers = {};
  std::optional<Refusal> refusal = {};
};
DraftRun resolve_draft(const Run& run, std::vector<Step>& steps);

// The backend that the draft's attention runs on, "fa3" or "fa3 / flashinfer"; empty: no model
// drafts.
std::string draft_backend(const Launch& launch);

// What rules of data/rules/sglang.json ask of a resolution.
void append_rule_facts(const Launch& launch, Resolution& resolution);

// Every argument whose final value matters to a reader, and who set it.
void append_final_options(const Run& run, Resolution& resolution);

}  // namespace kernelpath::engines::sglang
