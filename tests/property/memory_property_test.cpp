// Sharding loses nothing and hostile geometry is an error, never a wrong number.
#include "memory/state.h"
#include "memory/weights.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <numeric>

namespace kernelpath::memory {
namespace {

config::IntField stated(std::int64_t value) { return {value, {}}; }

struct Numbers {
  std::int64_t layers = 1;
  std::int64_t hidden = 64;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 16;
  std::int64_t intermediate = 128;
  std::int64_t vocab = 256;
  std::int64_t experts = 0;
};

config::ModelConfig make_model(const Numbers& n) {
  config::ModelConfig model;
  model.text_model_type = n.experts > 0 ? "qwen3_moe" : "qwen3";
  model.dtype = {"bfloat16", {}};
  model.hidden_size = stated(n.hidden);
  model.vocab_size = stated(n.vocab);
  model.intermediate_size = stated(n.intermediate);
  model.num_attention_heads = stated(n.heads);
  model.head_dim = stated(n.head_dim);
  config::Layer layer;
  layer.num_attention_heads = n.heads;
  layer.num_key_value_heads = n.kv_heads;
  layer.head_dim = n.head_dim;
  layer.v_head_dim = n.head_dim;
  layer.moe = n.experts > 0;
  model.layers.assign(static_cast<std::size_t>(n.layers), layer);
  if (n.experts > 0) {
    model.moe.emplace();
    model.moe->num_experts = stated(n.experts);
    model.moe->moe_intermediate_size = stated(n.intermediate);
  }
  return model;
}

Numbers arbitrary_numbers() {
  return {.layers = *rc::gen::inRange<std::int64_t>(1, 20),
          .hidden = *rc::gen::inRange<std::int64_t>(1, 5000),
          .heads = *rc::gen::inRange<std::int64_t>(1, 130),
          .kv_heads = *rc::gen::inRange<std::int64_t>(1, 130),
          .head_dim = *rc::gen::inRange<std::int64_t>(1, 300),
          .intermediate = *rc::gen::inRange<std::int64_t>(1, 5000),
          .vocab = *rc::gen::inRange<std::int64_t>(1, 5000),
          .experts = *rc::gen::inRange<std::int64_t>(0, 20)};
}

const char* arbitrary_algo() {
  return *rc::gen::element("", "FP8", "FP8_BLOCK_SCALES", "NVFP4", "W4A16_AWQ", "MXFP8");
}

RC_GTEST_PROP(CountWeights, RanksOfAGroup_HoldAtLeastTheWhole, ()) {
  config::ModelConfig model = make_model(arbitrary_numbers());
  const std::string algo = arbitrary_algo();
  if (!algo.empty()) model.quantization.algo = {algo, {}};
  const auto tp = *rc::gen::inRange<std::int64_t>(1, 17);
  const std::int64_t most = model.moe ? std::min(tp, *model.moe->num_experts) : 1;
  const auto ep = *rc::gen::inRange<std::int64_t>(1, most + 1);
  const auto ledger = count_weights(model, {.parallel = {.tp = tp, .ep = ep}});
  RC_ASSERT(ledger.has_value());
  for (const WeightItem& item : ledger->items) {
    // Where ep does not divide tp, some of the ranks hold no share of the experts' split.
    const bool uneven = item.part == Part::kExperts && tp % ep != 0;
    const std::int64_t ranks = uneven ? ep * std::max<std::int64_t>(tp / ep, 1) : tp;
    RC_ASSERT(item.rank_bytes * ranks >= item.bytes);
    RC_ASSERT(item.rank_bytes <= item.bytes);
  }
}

RC_GTEST_PROP(CountWeights, DivisibleSizes_AreDividedExactly, ()) {
  const auto tp = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  Numbers n = arbitrary_numbers();
  n.heads *= tp;
  n.kv_heads *= tp;
  n.intermediate *= tp;
  n.vocab *= tp;
  const config::ModelConfig model = make_model(n);
  const auto ledger = count_weights(model, {.parallel = {.tp = tp}});
  RC_ASSERT(ledger.has_value());
  const std::int64_t norms_of_heads = n.layers * 2 * n.head_dim * 2;
  for (const WeightItem& item : ledger->items) {
    const bool replicated = item.part == Part::kNorm || item.part == Part::kRouter;
    const std::int64_t kept = item.part == Part::kAttention ? norms_of_heads : 0;
    RC_ASSERT(item.rank_bytes == (replicated ? item.bytes : (item.bytes - kept) / tp + kept));
  }
}

RC_GTEST_PROP(CountWeights, PipelineStages_AddUpToOneRank, ()) {
  const config::ModelConfig model = make_model(arbitrary_numbers());
  const auto tp = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto pp =
      *rc::gen::inRange<std::int64_t>(1, static_cast<std::int64_t>(model.layers.size()) + 1);
  const auto one = count_weights(model, {.parallel = {.tp = tp}});
  const auto split = count_weights(model, {.parallel = {.tp = tp, .pp = pp}});
  RC_ASSERT(one.has_value() && split.has_value());
  RC_ASSERT(split->stage_bytes.size() == static_cast<std::size_t>(pp));
  const std::int64_t sum =
      std::accumulate(split->stage_bytes.begin(), split->stage_bytes.end(), std::int64_t{0});
  RC_ASSERT(sum == one->rank_bytes);
  RC_ASSERT(split->rank_bytes <= one->rank_bytes);
}

// Mostly the ends of the range, where products overflow.
std::int64_t hostile_integer() {
  return *rc::gen::oneOf(
      rc::gen::arbitrary<std::int64_t>(),
      rc::gen::element<std::int64_t>(0, -1, 1, INT64_MAX, INT64_MIN, std::int64_t{1} << 31,
                                     std::int64_t{1} << 32, std::int64_t{1} << 62),
      rc::gen::inRange<std::int64_t>(0, 1 << 20));
}

constexpr std::array kTypes = {"llama",       "deepseek_v3", "deepseek_v4", "glm_moe_dsa",
                               "nemotron_h",  "qwen3_next",  "jamba",       "lfm2",
                               "kimi_linear", "minimax",     "gemma4_text", "longcat_flash",
                               "gpt2",        "cohere",      "nobody"};
constexpr std::array kFields = {"index_topk_freq",   "index_skip_topk_offset",
                                "o_groups",          "o_lora_rank",
                                "q_lora_rank",       "hc_mult",
                                "moe_latent_size",   "zero_expert_num",
                                "mamba_dt_rank",     "block_multiple_of",
                                "expansion_ratio",   "n_positions",
                                "attention_bias",    "num_hash_layers",
                                "target_hidden_size"};

config::ModelConfig hostile_model() {
  config::ModelConfig model = make_model({.layers = *rc::gen::inRange<std::int64_t>(1, 6),
                                          .hidden = hostile_integer(),
                                          .heads = hostile_integer(),
                                          .kv_heads = hostile_integer(),
                                          .head_dim = hostile_integer(),
                                          .intermediate = hostile_integer(),
                                          .vocab = hostile_integer(),
                                          .experts = hostile_integer()});
  model.text_model_type = *rc::gen::elementOf(kTypes);
  for (config::Layer& layer : model.layers) {
    layer.kind = static_cast<config::LayerKind>(*rc::gen::inRange(0, 9));
    layer.has_state = *rc::gen::arbitrary<bool>();
    layer.moe = *rc::gen::arbitrary<bool>();
  }
  for (const char* field : kFields) model.text_integers.emplace_back(field, hostile_integer());
  std::sort(model.text_integers.begin(), model.text_integers.end());
  for (const char* field : {"depth", "hidden_size", "mlp_ratio", "patch_size"}) {
    model.vision_integers.emplace_back(field, hostile_integer());
  }
  config::LinearState& state = model.linear_state.emplace();
  for (config::IntField* field : {&state.conv_kernel, &state.state_size, &state.num_heads,
                                  &state.head_dim, &state.num_groups, &state.intermediate_size}) {
    if (*rc::gen::arbitrary<bool>()) *field = stated(hostile_integer());
  }
  if (*rc::gen::arbitrary<bool>()) {
    config::Mla& mla = model.mla.emplace();
    mla.q_lora_rank = stated(hostile_integer());
    mla.kv_lora_rank = stated(hostile_integer());
    mla.qk_nope_head_dim = stated(hostile_integer());
    mla.qk_rope_head_dim = stated(hostile_integer());
    mla.v_head_dim = stated(hostile_integer());
  }
  config::SparseAttention& sparse = model.sparse.emplace();
  sparse.index_n_heads = stated(hostile_integer());
  sparse.index_head_dim = stated(hostile_integer());
  sparse.compress_ratios = {4, 128, hostile_integer()};
  model.draft.num_nextn_predict_layers = stated(hostile_integer());
  model.weights.emplace().total_bytes = stated(hostile_integer());
  model.quantization.algo = {arbitrary_algo(), {}};
  model.quantization.weight_block_size = {hostile_integer(), hostile_integer()};
  model.quantization.group_size = stated(hostile_integer());
  return model;
}

RC_GTEST_PROP(CountWeights, HostileGeometry_IsAnErrorOrAllPositive, ()) {
  const config::ModelConfig model = hostile_model();
  const Parallel parallel{.tp = hostile_integer(), .ep = hostile_integer()};
  const auto ledger = count_weights(model, {.parallel = parallel, .load_mtp = true});
  if (!ledger) {
    RC_ASSERT(!ledger.error().message.empty());
    return;
  }
  RC_ASSERT(ledger->bytes >= 0 && ledger->parameters >= 0 && ledger->rank_bytes >= 0);
  for (const WeightItem& item : ledger->items) {
    RC_ASSERT(item.parameters >= 0 && item.bytes >= 0 && item.rank_bytes >= 0);
  }
}

RC_GTEST_PROP(StateBytes, HostileGeometry_IsAnErrorOrAllPositive, ()) {
  const auto state = state_bytes(hostile_model(), {.tp = hostile_integer()});
  if (!state) return;
  RC_ASSERT(state->conv_bytes >= 0 && state->state_bytes >= 0 && state->bytes_per_sequence >= 0);
}

}  // namespace
}  // namespace kernelpath::memory
