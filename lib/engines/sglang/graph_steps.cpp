#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// Source: arg_groups/cuda_graph_hook.py, arg_groups/memory_hook.py.
namespace kernelpath::engines::sglang {
namespace {

constexpr std::string_view kDisabled = "disabled";
constexpr std::string_view kBreakable = "breakable";

void lock_backend(Launch& launch, GraphPhase phase, std::string_view backend) {
  GraphConfig& graph = launch.mutable_graph();
  (phase == GraphPhase::kDecode ? graph.decode : graph.prefill) = std::string(backend);
  (phase == GraphPhase::kDecode ? graph.decode_locked : graph.prefill_locked) = true;
}

// --cuda-graph-config: {"decode": {"backend": …, "max_bs": …}, …}; wins over the single options.
void parse_explicit(Launch& launch) {
  const json::Value& config = launch.arguments().value("cuda_graph_config");
  for (const auto& [name, phase] :
       {std::pair("decode", GraphPhase::kDecode), std::pair("prefill", GraphPhase::kPrefill)}) {
    const json::Value* settings = config.find_non_null(name);
    if (settings == nullptr) continue;
    const json::Value* backend = settings->find_non_null("backend");
    if (backend != nullptr && backend->is_string()) {
      lock_backend(launch, phase, backend->as_string());
    }
    const json::Value* max_bs = settings->find_non_null("max_bs");
    if (max_bs == nullptr || !max_bs->is_integer()) continue;
    GraphConfig& graph = launch.mutable_graph();
    (phase == GraphPhase::kDecode ? graph.decode_max_bs : graph.prefill_max_bs) =
        max_bs->as_integer();
  }
}

void parse_config(Launch& launch) {
  const GraphConfig before = launch.graph();
  if (launch.flag("disable_cuda_graph")) {
    lock_backend(launch, GraphPhase::kDecode, kDisabled);
    lock_backend(launch, GraphPhase::kPrefill, kDisabled);
  }
  if (launch.flag("disable_prefill_cuda_graph")) {
    lock_backend(launch, GraphPhase::kPrefill, kDisabled);
  }
  if (launch.flag("disable_decode_cuda_graph")) {
    lock_backend(launch, GraphPhase::kDecode, kDisabled);
  }
  const std::string decode = launch.text("cuda_graph_backend_decode");
  const std::string prefill = launch.text("cuda_graph_backend_prefill");
  if (!decode.empty()) lock_backend(launch, GraphPhase::kDecode, decode);
  if (!prefill.empty()) lock_backend(launch, GraphPhase::kPrefill, prefill);
  launch.mutable_graph().decode_max_bs = launch.integer("cuda_graph_max_bs_decode");
  launch.mutable_graph().prefill_max_bs = launch.integer("cuda_graph_max_bs_prefill");
  parse_explicit(launch);
  // The first configuration is news where it changes how decoding runs.
  if (launch.graph().decode != before.decode) {
    launch.record_graph(kGraphConfig, json::Value::null());
  }
}

// Why a breakable prefill graph cannot be, in the engine's order; an empty name is silent.
struct Incompatible {
  bool holds;
  std::string_view name;
};

std::optional<std::string_view> find_incompatible(const Launch& launch) {
  const ModelFacts& model = launch.model();
  const std::string a2a = launch.text("moe_a2a_backend");
  const bool validated =
      a2a == "none" || a2a == "deepep" || a2a == "megamoe" || a2a == "flashinfer";
  const std::array rows = {
      Incompatible{
          model.uses_kda && !contains(model.architectures, "Glm5NextForConditionalGeneration"),
          "KDA hybrid linear attention"},
      Incompatible{model.is_deepseek_v4, "DeepSeek-V4 (heavy capture-pool memory pressure)"},
      Incompatible{launch.size("attn_cp_size") > 1, ""},
      Incompatible{launch.size("dcp_size") > 1, "decode context parallel (dcp_size > 1)"},
      Incompatible{launch.flag("enable_two_batch_overlap"), "two-batch overlap"},
      Incompatible{!validated, "unvalidated a2a backend"},
      Incompatible{model.is_multimodal && !model.multimodal_breakable_graph, "multimodal model"},
  };
  const auto* const found =
      std::find_if(rows.begin(), rows.end(), [](const Incompatible& row) { return row.holds; });
  if (found == rows.end()) return std::nullopt;
  return found->name;
}

void drop_incompatible(Launch& launch) {
  if (launch.graph().prefill_locked || launch.graph().prefill != kBreakable) return;
  if (launch.size("pp_size") > 1) {
    launch.info(kGraphPipeline,
                "Disabling breakable prefill CUDA graph by default for pipeline parallelism. Set "
                "--cuda-graph-backend-prefill=breakable to opt in.");
    launch.set_graph(kGraphPipeline, GraphPhase::kPrefill, kDisabled);
    return;
  }
  const auto name = find_incompatible(launch);
  if (!name) return;
  if (!name->empty()) {
    launch.warn(kGraphIncompatible,
                fmt::format("Breakable CUDA graph is incompatible with {}; disabling prefill CUDA "
                            "graph.",
                            *name));
  }
  launch.set_graph(kGraphIncompatible, GraphPhase::kPrefill, kDisabled);
}

void align_for_deepep(Launch& launch) {
  if (launch.text("moe_a2a_backend") != "deepep" || launch.graph().prefill != kBreakable) return;
  launch.info(kGraphDeepEp,
              "Breakable prefill CUDA graph with DeepEP requires bucket sizes divisible by 8; they "
              "are aligned.");
}

void drop_for_role(Launch& launch) {
  const std::string mode = launch.text("disaggregation_mode");
  if (mode == "prefill" && !launch.graph().decode_locked) {
    launch.set_graph(kGraphRole, GraphPhase::kDecode, kDisabled);
  } else if (mode == "decode" && !launch.graph().prefill_locked) {
    launch.set_graph(kGraphRole, GraphPhase::kPrefill, kDisabled);
  }
}

// --- sizes that follow from the memory of the device ---------------------------------------------

struct MemoryRow {
  std::int64_t below_mib;
  std::int64_t chunked_prefill;
  std::int64_t decode_max_bs;
  std::int64_t decode_max_bs_tp4;  // with tensor parallelism of 4 or more
};
constexpr std::int64_t kMibPerGib = 1024;
constexpr std::array kMemoryRows = {
    MemoryRow{20 * kMibPerGib, 2048, 8, 8},      MemoryRow{35 * kMibPerGib, 4096, 48, 160},
    MemoryRow{60 * kMibPerGib, 4096, 32, 160},   MemoryRow{90 * kMibPerGib, 8192, 256, 512},
    MemoryRow{160 * kMibPerGib, 8192, 256, 512},
};
constexpr MemoryRow kMostMemory = {0, 16384, 512, 512};
constexpr MemoryRow kUnknownMemory = {0, 4096, 160, 160};
constexpr std::int64_t kLargestPrefillGraph = 8192;

const MemoryRow& memory_row(std::optional<std::int64_t> memory_mib) {
  if (!memory_mib) return kUnknownMemory;
  const auto* const found =
      std::find_if(kMemoryRows.begin(), kMemoryRows.end(),
                   [&](const MemoryRow& row) { return *memory_mib < row.below_mib; });
  return found == kMemoryRows.end() ? kMostMemory : *found;
}

// A vision model on a large Hopper GPU captures up to what it may run.
void expand_for_vision(Launch& launch) {
  constexpr std::int64_t kLargestExpansion = 512;
  GraphConfig& graph = launch.mutable_graph();
  const auto requests = launch.integer("max_running_requests");
  const std::string& type = launch.model().model_type;
  const bool vision =
      launch.model().is_multimodal && (type == "qwen3_vl" || type == "qwen3_vl_moe");
  const bool large = launch.input().gpu_memory_mib.value_or(0) >= 60 * kMibPerGib;
  if (!launch.platform().sm90() || !large || !vision || !requests) return;
  if (*requests > kLargestExpansion || *graph.decode_max_bs >= *requests) return;
  launch.info(kGraphVision, fmt::format("Expanding multimodal decode CUDA graph max_bs from {} to "
                                        "max_running_requests={}.",
                                        *graph.decode_max_bs, *requests));
  graph.decode_max_bs = *requests;
}

// Tokens of the largest prefill graph; pipeline stages capture small ones, where no size is stated.
std::int64_t largest_prefill_graph(const Launch& launch) {
  const std::int64_t chunk = launch.integer("chunked_prefill_size").value_or(0);
  const bool in_stages = launch.size("pp_size") > 1 && launch.graph().prefill == "breakable" &&
                         launch.unset("cuda_graph_bs_prefill");
  const std::int64_t largest =
      launch.mla() || in_stages ? std::min(kLargestPrefillGraph, chunk) : chunk;
  return std::min(largest, launch.integer("max_total_tokens").value_or(largest));
}

}  // namespace

void cuda_graph_config(Launch& launch) {
  const std::string& architecture = launch.model().architecture();
  const bool inkling = architecture == "InklingForConditionalGeneration" ||
                       architecture == "InklingForConditionalGenerationMTP";
  if (inkling && launch.unset("cuda_graph_backend_prefill") &&
      !launch.flag("disable_prefill_cuda_graph")) {
    launch.declare(kGraphInkling, "cuda_graph_backend_prefill", text_value("full"));
  }
  parse_config(launch);
  drop_incompatible(launch);
  align_for_deepep(launch);
  drop_for_role(launch);
  if (launch.graph().prefill == "full") {
    launch.warn(kGraphFullPrefill,
                "cuda_graph_config[prefill].backend='full' is experimental. Use breakable for "
                "production workloads.");
  }
}

void gpu_memory_settings(Launch& launch) {
  const MemoryRow& row = memory_row(launch.input().gpu_memory_mib);
  if (launch.unset("chunked_prefill_size")) {
    launch.declare(kMemoryChunk, "chunked_prefill_size", integer_value(row.chunked_prefill));
  }
  GraphConfig& graph = launch.mutable_graph();
  if (!graph.decode_max_bs) {
    const bool wide = launch.size("tp_size") >= 4;
    graph.decode_max_bs = wide ? row.decode_max_bs_tp4 : row.decode_max_bs;
    const auto requests = launch.integer("max_running_requests");
    if (requests) graph.decode_max_bs = std::min(*graph.decode_max_bs, *requests);
    expand_for_vision(launch);
  }
  if (!graph.prefill_max_bs) graph.prefill_max_bs = largest_prefill_graph(launch);
}

void deepseek_trtllm_mla_graph(Launch& launch) {
  if (launch.graph().prefill_locked || launch.graph().prefill == kDisabled) return;
  if (!contains(launch.model().architectures, "DeepseekV3ForCausalLM")) return;
  if (launch.prefill_backend() != "trtllm_mla") return;
  launch.warn(
      kGraphTrtllmMla,
      fmt::format("Disabling prefill CUDA graph ({}) by default for the DeepSeek-V3 arch on "
                  "the trtllm_mla attention backend (a captured prefill graph forces a "
                  "FlashAttention fallback that regresses prefill). Set the prefill cuda "
                  "graph backend explicitly (e.g. --cuda-graph-backend-prefill breakable) "
                  "to override.",
                  launch.graph().prefill));
  launch.set_graph(kGraphTrtllmMla, GraphPhase::kPrefill, kDisabled);
}

}  // namespace kernelpath::engines::sglang
