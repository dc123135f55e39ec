#pragma once

#include "engines/deepinfer/arguments.h"
#include "engines/deepinfer/attention.h"
#include "engines/deepinfer/graphs.h"
#include "engines/deepinfer/kv_cache.h"
#include "engines/deepinfer/model.h"
#include "engines/deepinfer/variables.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::deepinfer {

// Everything that decides. `config` is null where the folder has no config.json.
struct Question {
  const json::Value* config = nullptr;
  std::string folder = "MODEL";
  Arguments arguments = {};
  Variables variables{{}, false};
  Machine machine = {};
};

struct Experts {
  std::int64_t routed = 0;
  std::int64_t redundant = 0;
  std::int64_t draft_routed = 0;
  std::int64_t draft_redundant = 0;
};

// Prefill of the consumer layers. Source: deepseek.py, _init_yoco.
struct Truncation {
  std::string mode = "off";
  std::int64_t boundary_layer = 0;
  std::optional<std::int64_t> boundary = {};  // where a prompt is cut; nothing while mode is off
  bool targets_in_consumer = false;
};

// What start-up has worked out by the time it ends or stops; a field stays empty if it stopped
// before.
struct StartUp {
  std::optional<bool> overlap_scheduling = {};
  std::optional<bool> multimodal_pool = {};
  std::optional<bool> multimodal = {};  // images are taken; COMPLETION engines only go on with text
  std::optional<Limits> limits = {};
  std::optional<ParallelSizes> parallel = {};
  std::optional<Model> model = {};
  std::optional<GraphPlan> graphs = {};
  std::optional<Experts> experts = {};
  std::optional<Topology> topology = {};
  std::optional<std::vector<LayerAttention>> layers = {};
  std::optional<Truncation> truncation = {};
  std::optional<std::int64_t> blocks_per_sequence = {};
  std::optional<WindowRing> window_ring = {};
  std::optional<KvCache> kv = {};
  std::optional<std::int64_t> bf16_tflops = {};
  std::optional<Fault> fault = {};
};

// The engine's start-up as its Python rules alone decide it. FlashMLA's own refusals, which come in
// the profile run before `bf16_tflops` is asked for, are check_kernel's.
StartUp start_up(const Question& question);

}  // namespace kernelpath::engines::deepinfer
