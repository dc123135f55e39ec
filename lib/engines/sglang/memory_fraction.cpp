#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <algorithm>
#include <array>
#include <cmath>

// The share of the device that weights and cache may take, as the engine estimates it.
// Source: arg_groups/memory_hook.py (handle_gpu_memory_settings, reserve_for_graph_mb,
// reserve_for_deepep_a2a_mb, adjust_mem_fraction_for_vlm), arg_groups/cuda_graph_hook.py
// (generate_prefill_cuda_graph_batch_sizes).
namespace kernelpath::engines::sglang {
namespace {

constexpr std::string_view kDisabled = "disabled";
constexpr double kGibMib = 1024;
constexpr std::int64_t kFewestTokens = 2048;

bool serves(const Launch& launch, std::string_view role) {
  return launch.text("disaggregation_mode") == role;
}

double ranks_mib(const Launch& launch) {
  constexpr double kRanksAGib = 8;
  const auto ranks = static_cast<double>(launch.size("tp_size") * launch.size("pp_size"));
  return ranks / kRanksAGib * kGibMib;
}

// Sizes of prefill graphs up to `largest` tokens, the number of them.
std::int64_t num_prefill_graphs(const Launch& launch, std::int64_t largest) {
  const json::Value& stated = launch.arguments().value("cuda_graph_bs_prefill");
  if (stated.is_array()) return static_cast<std::int64_t>(stated.items().size());
  struct Range {
    std::int64_t first;
    std::int64_t last;
    std::int64_t step;
  };
  const std::array ranges = {Range{4, 32, 4},        Range{48, 256, 16},
                             Range{288, 512, 32},    Range{576, 1024, 64},
                             Range{1280, 4096, 256}, Range{4608, largest, 512}};
  std::int64_t count = 0;
  for (const Range& range : ranges) {
    const std::int64_t last = std::min(range.last, largest);
    if (last >= range.first) count += (last - range.first) / range.step + 1;
  }
  return count;
}

// Tokens that the activations of a step are for.
std::int64_t activation_tokens(const Launch& launch) {
  if (serves(launch, "decode")) {
    const std::int64_t requests =
        launch.integer("max_running_requests").value_or(launch.graph().decode_max_bs.value_or(1));
    return std::max(requests * launch.size("speculative_num_draft_tokens"), kFewestTokens);
  }
  const std::int64_t chunk = launch.integer("chunked_prefill_size").value_or(0);
  const std::int64_t tokens = chunk > 0 ? chunk : launch.integer("max_prefill_tokens").value_or(0);
  return std::max(tokens, kFewestTokens);
}

double decode_graphs_mib(const Launch& launch) {
  constexpr double kPerRequest = 2;
  constexpr double kPerRequestAndGroup = 3;
  constexpr double kMoreThanMany = 1.5;
  constexpr double kMany = 300;
  if (serves(launch, "prefill")) return 0;
  const auto largest = static_cast<double>(launch.graph().decode_max_bs.value_or(0));
  double mib = launch.graph().decode == kDisabled ? 0 : largest * kPerRequest;
  if (!launch.attention_dp()) return mib;
  const auto groups = static_cast<double>(launch.size("attn_dp_size"));
  mib += largest * groups * kPerRequestAndGroup;
  if (largest > kMany) mib += largest * groups * kMoreThanMany;
  return mib;
}

double prefill_graphs_mib(const Launch& launch) {
  constexpr double kPerGraph = 8;
  constexpr double kWithMla = 1.5 * kGibMib;
  if (serves(launch, "decode") || launch.graph().prefill == kDisabled) return 0;
  const std::int64_t largest = launch.graph().prefill_max_bs.value_or(0);
  double mib = launch.mla() ? kWithMla
                            : static_cast<double>(num_prefill_graphs(launch, largest)) * kPerGraph;
  const bool deepep = launch.text("moe_a2a_backend") == "deepep";
  if (launch.graph().prefill == "breakable" && deepep) mib += kGibMib;
  return mib;
}

// DeepEP's buffers in the decode graph come on top of every floor.
double all_to_all_mib(const Launch& launch) {
  const bool captured = !serves(launch, "prefill") && launch.graph().decode != kDisabled;
  return captured && launch.text("moe_a2a_backend") == "deepep" ? 2 * kGibMib : 0;
}

double reserved_mib(const Launch& launch, double gpu_mib) {
  constexpr double kConstant = 512;
  constexpr double kPerToken = 1.5;
  constexpr double kLargeGpu = 60 * kGibMib;
  constexpr double kFloorOfLarge = 10 * kGibMib;
  double mib = kConstant + static_cast<double>(activation_tokens(launch)) * kPerToken;
  mib += ranks_mib(launch) + decode_graphs_mib(launch) + prefill_graphs_mib(launch);
  if (gpu_mib > kLargeGpu) mib = std::max(mib, kFloorOfLarge);
  return mib + all_to_all_mib(launch);
}

// Sizing after the capture measures what graphs took, so that only a floor is kept for them.
bool is_sized_after_capture(const Launch& launch) {
  constexpr std::string_view kVariable = "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING";
  const bool by_default = launch.model().is("MuseSparkForConditionalGeneration");
  const bool asked =
      launch.variable_text(kVariable) == nullptr ? by_default : launch.variable(kVariable);
  if (!asked || launch.mla() || !launch.device_is("cuda") || launch.size("dcp_size") != 1) {
    return false;
  }
  for (const std::string_view excluded :
       {"enable_kv_cache_sharding", "prefill_only_disable_kv_cache", "enable_memory_saver"}) {
    if (launch.flag(excluded)) return false;
  }
  if (launch.flag("enable_unified_memory") && !launch.model().is_hybrid_swa) return false;
  if (launch.model().is_deepseek_v4 || launch.model().is_minimax_sparse) return false;
  if (!serves(launch, "prefill") && launch.graph().decode == kDisabled) return false;
  if (serves(launch, "decode")) return true;
  const std::int64_t chunk = launch.integer("chunked_prefill_size").value_or(0);
  return launch.graph().prefill != kDisabled && chunk > 0 &&
         launch.graph().prefill_max_bs.value_or(0) >= chunk;
}

bool encodes_images(const Launch& launch) {
  return launch.model().is_multimodal && !launch.flag("language_only") &&
         !launch.flag("language_model_only") && !serves(launch, "decode");
}

// A vision tower larger than ViT-L/14 leaves less, a smaller one more.
double share_beside_vision(const Launch& launch, double share) {
  constexpr double kRegular = 0.95;
  constexpr double kSensitivity = 0.1;
  constexpr double kLayers = 24;
  constexpr double kHidden = 1024;
  const json::Value* const vision = launch.input().model.config.find_non_null("vision_config");
  if (vision == nullptr) return share;
  const auto number = [vision](std::string_view key, double otherwise) {
    const json::Value* const value = vision->find(key);
    return value != nullptr && value->is_number() ? value->as_double() : otherwise;
  };
  const double hidden = number("hidden_size", kHidden);
  const double ratio =
      number("num_hidden_layers", kLayers) * hidden * hidden / (kLayers * kHidden * kHidden);
  return share * kRegular * std::clamp(1 - kSensitivity * (ratio - 1), 0.8, 1.05);
}

}  // namespace

void static_memory_fraction(Launch& launch) {
  constexpr double kDigits = 1000;
  constexpr double kFloor = 1536;
  constexpr double kVision = 8 * kGibMib;
  if (!launch.unset("mem_fraction_static")) return;
  const auto known = launch.input().gpu_memory_mib;
  if (!known || *known <= 0) return;
  const auto gpu = static_cast<double>(*known);
  const bool measured = is_sized_after_capture(launch);
  const double reserved = measured ? kFloor + ranks_mib(launch) : reserved_mib(launch, gpu);
  double share = std::round((gpu - reserved) / gpu * kDigits) / kDigits;
  if (encodes_images(launch)) {
    share = measured ? share - kVision / gpu : share_beside_vision(launch, share);
  }
  launch.fill(kMemoryFraction, "mem_fraction_static", json::Value::number(share));
}

}  // namespace kernelpath::engines::sglang
