#pragma once

#include "config/model_config.h"
#include "engines/resolution.h"
#include "engines/vllm/cudagraph.h"
#include "engines/vllm/kv_cache_plan.h"
#include "engines/vllm/model_class.h"
#include "engines/vllm/model_registry.h"
#include "engines/vllm/model_view.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/run_flags.h"
#include "engines/vllm/run_plan.h"
#include "engines/vllm/selector.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// A whole run: everything that the engine decides between a config.json and its first batch.
struct RunQuestion {
  const Profile& profile;
  const ModelRegistry& registry;
  const Machine& machine;
  const config::ModelConfig& model;
  RunFlags flags;
  std::vector<RegisteredModel> registered_models = {};
  std::vector<RegisteredBackend> registered_backends = {};
  const config::ModelConfig* draft = nullptr;  // null pointer: none is named, or it is not here
};

// One decision, in the order of the engine's.
struct RunEvent {
  std::string rule;  // of run_rules(), select_rules() or kv_cache_rules()
  Stage stage = Stage::kRewrite;
  Severity severity = Severity::kInfo;
  std::string candidate = {};  // what it is about: "cache_dtype", a class
  std::string reason = {};     // one sentence
};

// One question to the selector, and the layers that it was asked for.
struct LayerSelection {
  SelectorRequest request;
  Selection selection;
  std::vector<std::size_t> layers;  // indices of RunResult::layers; empty: the run ended here
  std::string run_kv_dtype = {};    // the run's cache dtype when it was asked
  bool draft = false;               // its layers are of the model that drafts tokens
};

// The model that drafts tokens.
struct DraftModel {
  config::ModelConfig model;  // as the engine reads it
  ModelClass model_class;
  std::int64_t max_model_len = 0;
  bool shares_checkpoint = false;  // its layers are in the target's
  bool shares_cache = false;       // they read the target's cache and keep none
};

struct RunResult {
  ModelClass model_class;
  // Set once the engine's configuration is complete; what follows needs it.
  std::optional<ModelView> view = {};
  RunConfig requested;   // what the user and the defaults say
  RunConfig configured;  // when the configuration is complete
  RunConfig run;         // when the run ended
  std::vector<BuiltLayer> layers;
  std::vector<LayerSelection> selections;
  std::optional<DraftModel> draft = {};
  std::optional<Selection> mla_prefill = {};
  std::optional<KvCachePlan> cache = {};
  std::optional<GraphPlan> graphs = {};
  std::vector<RunError> errors;  // as a rule the run ends with the first
  std::vector<RunEvent> events;
  std::vector<std::string> rewrites;  // "cache_dtype: auto -> fp8", …
  // What could not be derived from the configuration alone, for this class; empty: nothing.
  std::vector<std::string> unknown;
};

// Walks through the engine's steps in their order until one of them raises.
RunResult resolve_run(const RunQuestion& question);

}  // namespace kernelpath::engines::vllm
