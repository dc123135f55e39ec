#pragma once

#include "engines/vllm/class_layers.h"
#include "engines/vllm/layer_plan.h"

namespace kernelpath::engines::vllm {

// Layers whose class sets its backend or its caches by itself. Each returns false where the
// configuration lacks the numbers.

// MiniMax M3's sparse attention: a cache of index keys, and the cache of keys and values.
// Source: models/minimax_m3/{nvidia/model,common/sparse_attention,common/indexer}.py.
bool plan_minimax_m3(const RunState& state, const config::Layer& layer, PlannedLayer base,
                     LayerPlan& plan);

// Inkling: a window of what its short convolutions read, and attention.
// Source: models/inkling/nvidia/{attention,sconv_swa_attn,model}.py.
bool plan_inkling(const RunState& state, const config::Layer& layer, PlannedLayer base,
                  LayerPlan& plan);

// openPangu's attention behind tokens that every sequence has.
// Source: model_executor/models/openpangu.py, layers/attention/static_sink_attention.py.
bool plan_static_sink(const RunState& state, const config::Layer& layer, PlannedLayer base,
                      LayerPlan& plan);

// Which layers of HY V4 are sparse, and which of those have an indexer of their own.
// Source: models/hy_v4/nvidia/attention.py.
bool is_sparse_hy_v4(const config::ModelConfig& model, std::int64_t index);
bool has_indexer_hy_v4(const config::ModelConfig& model, std::int64_t index);

// PLaMo2 says by a step which of its layers attend; the others have a state.
// Source: model_executor/models/plamo2.py.
bool attends_plamo2(const config::ModelConfig& model, std::int64_t index);

}  // namespace kernelpath::engines::vllm
