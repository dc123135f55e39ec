#include "engines/sglang/rule_ids.h"
#include "engines/sglang/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// Source: arg_groups/model_hook.py (handle_language_model_only,
// handle_model_capability_adjustments), arg_groups/dllm_hook.py, dllm/config.py,
// configs/embedding_model_spec.py.
namespace kernelpath::engines::sglang {
namespace {

// --- diffusion language models -------------------------------------------------------------------

struct DiffusionModel {
  std::string_view architecture;
  std::int64_t block;
  std::string_view algorithm;  // the only one that it takes; empty: any
};
constexpr std::array kDiffusionModels = {
    DiffusionModel{"LLaDA2MoeModelLM", 32, ""},
    DiffusionModel{"SDARForCausalLM", 4, ""},
    DiffusionModel{"SDARMoeForCausalLM", 4, ""},
    DiffusionModel{"DiffusionGemmaForBlockDiffusion", 256, "Gemma4Renoise"},
};
constexpr std::array<std::string_view, 4> kDiffusionAlgorithms = {
    "Gemma4Renoise", "JointThreshold", "JointThresholdInDel", "LowConfidence"};
constexpr std::string_view kRenoise = "Gemma4Renoise";

bool renoise_backend(const std::string& backend, bool may_be_unset) {
  return backend == "triton" || backend == "fa4" || (may_be_unset && backend.empty());
}

void diffusion_gemma_backend(Launch& launch) {
  const bool fits = renoise_backend(launch.text("attention_backend"), false) &&
                    renoise_backend(launch.text("prefill_attention_backend"), true) &&
                    renoise_backend(launch.text("decode_attention_backend"), true);
  if (fits) return;
  Declaration fields;
  for (const std::string_view field :
       {"attention_backend", "prefill_attention_backend", "decode_attention_backend"}) {
    if (launch.text(field) != "triton") {
      fields.emplace_back(std::string(field), text_value("triton"));
    }
  }
  launch.warn(kDiffusionBackend, "Gemma4Renoise requires the triton attention backend");
  launch.declare(kDiffusionBackend, std::move(fields));
}

void diffusion_backend(Launch& launch) {
  if (launch.text("dllm_algorithm") == kRenoise) return diffusion_gemma_backend(launch);
  const std::string backend = launch.text("attention_backend");
  if (launch.platform().hip()) {
    if (backend == "triton" || backend == "aiter") return;
    launch.warn(kDiffusionBackend,
                "Attention backend is set to triton for diffusion LLM inference on AMD GPUs");
    launch.declare(kDiffusionBackend, "attention_backend", text_value("triton"));
    return;
  }
  if (launch.graph().decode == "disabled" || backend == "flashinfer") return;
  launch.warn(kDiffusionBackend,
              "Attention backend is set to flashinfer because of enabling cuda graph in diffusion "
              "LLM inference");
  launch.declare(kDiffusionBackend, "attention_backend", text_value("flashinfer"));
}

const DiffusionModel* find_diffusion_model(Launch& launch) {
  const std::string& name = launch.model().architecture();
  const auto* const found =
      std::find_if(kDiffusionModels.begin(), kDiffusionModels.end(),
                   [&](const DiffusionModel& row) { return row.architecture == name; });
  if (found == kDiffusionModels.end()) {
    launch.refuse("resolve", "RuntimeError", kDiffusionModel, "Unknown diffusion LLM: " + name);
    return nullptr;
  }
  const std::string algorithm = launch.text("dllm_algorithm");
  if (!found->algorithm.empty() && found->algorithm != algorithm) {
    launch.value_error(kDiffusionModel, fmt::format("{} requires the {} diffusion algorithm", name,
                                                    found->algorithm));
    return nullptr;
  }
  if (algorithm == kRenoise && found->algorithm != kRenoise) {
    launch.value_error(kDiffusionModel,
                       fmt::format("{} does not support model architecture {}", algorithm, name));
    return nullptr;
  }
  return &*found;
}

void diffusion_page(Launch& launch) {
  const DiffusionModel* model = find_diffusion_model(launch);
  if (model == nullptr) return;
  const bool gemma = model->algorithm == kRenoise;
  const std::int64_t block =
      gemma ? launch.model().canvas_length.value_or(model->block) : model->block;
  const std::int64_t page = launch.integer("page_size").value_or(1);
  if (!launch.flag("disable_radix_cache") && page % block != 0) {
    launch.warn(kDiffusionPage,
                fmt::format("Setting page size to {} for diffusion LLM inference", block));
    launch.declare(kDiffusionPage, "page_size", integer_value(block));
  } else if (page > block) {
    launch.warn(kDiffusionPage,
                fmt::format("WARNING: The page size {} should not be larger than dllm block size "
                            "{}.Page size now falls back to {}",
                            page, block, block));
    launch.declare(kDiffusionPage, "page_size", integer_value(block));
  }
}

struct Unsupported {
  std::string_view field;
  std::string_view text;
};

void diffusion_flags(Launch& launch) {
  constexpr std::array kCaches = {
      Unsupported{"enable_hierarchical_cache",
                  "Hierarchical cache is disabled because of using diffusion LLM inference"},
      Unsupported{"enable_lmcache", "LMCache is disabled because of using diffusion LLM inference"},
      Unsupported{"enable_flexkv", "FlexKV is disabled because of using diffusion LLM inference"}};
  for (const Unsupported& row : kCaches) {
    if (launch.flag("disable_radix_cache") || !launch.flag(row.field)) continue;
    launch.warn(kDiffusionFeatures, std::string(row.text));
    launch.declare(kDiffusionFeatures, std::string(row.field), boolean_value(false));
  }
  if (launch.size("pp_size") > 1) {
    launch.warn(kDiffusionFeatures,
                "Pipeline parallelism is disabled because of using diffusion LLM inference");
    launch.declare(kDiffusionFeatures, "pp_size", integer_value(1));
  }
  if (launch.flag("enable_lora")) {
    launch.warn(kDiffusionFeatures, "Currently LoRA is not supported by diffusion LLM inference.");
    launch.declare(kDiffusionFeatures, "enable_lora", boolean_value(false));
  }
  if (launch.text("disaggregation_mode") != "null") {
    launch.warn(kDiffusionFeatures,
                "Currently disaggregation is not supported by diffusion LLM inference.");
    launch.declare(kDiffusionFeatures, "disaggregation_mode", text_value("null"));
  }
  if (launch.flag("enable_mixed_chunk")) {
    launch.warn(kDiffusionFeatures,
                "Mixed chunked prefill is disabled because of using diffusion LLM inference.");
    launch.declare(kDiffusionFeatures, "enable_mixed_chunk", boolean_value(false));
  }
}

// --- what a model's capabilities force -----------------------------------------------------------

void no_radix_no_chunks(Launch& launch, std::string_view rule) {
  launch.declare(rule, "disable_radix_cache", boolean_value(true));
  launch.declare(rule, "chunked_prefill_size", integer_value(-1));
}

void hrm_text(Launch& launch) {
  const ModelFacts& model = launch.model();
  const bool hrm =
      model.model_type == "hrm_text" || contains(model.architectures, "HrmTextForCausalLM");
  if (!hrm || !model.prefix_lm) return;
  const std::string backend = launch.text("attention_backend");
  if (backend != "triton") {
    launch.warn(kCapabilityHrm,
                fmt::format("Overriding --attention-backend '{}' -> 'triton': only the Triton "
                            "backend supports HRM-Text's bidirectional prefix attention.",
                            backend));
  }
  launch.declare(kCapabilityHrm, "attention_backend", text_value("triton"));
  launch.declare(kCapabilityHrm, "chunked_prefill_size", integer_value(-1));
  launch.declare(kCapabilityHrm, "disable_radix_cache", boolean_value(true));
  launch.declare(kCapabilityHrm, "disable_cuda_graph", boolean_value(true));
  launch.disable_graphs(kCapabilityHrm);
  launch.warn(kCapabilityHrm,
              "HRM-Text (prefix_lm) detected: forcing --attention-backend triton, "
              "--chunked-prefill-size -1, --disable-radix-cache, and --disable-cuda-graph for "
              "correctness of the bidirectional prompt attention.");
}

bool native_embedding(const Launch& launch) {
  const ModelFacts& model = launch.model();
  return contains(model.architectures, "EmbeddingGemma2Model") || model.is_embedding_gemma ||
         std::any_of(
             model.architectures.begin(), model.architectures.end(),
             [&](const std::string& name) { return launch.profile().in_group("embedding", name); });
}

void embedding_mode(Launch& launch) {
  const ModelFacts& model = launch.model();
  const bool gemma2 = contains(model.architectures, "EmbeddingGemma2Model");
  if (native_embedding(launch) && !launch.flag("is_embedding")) {
    launch.declare(kCapabilityEmbedding, "is_embedding", boolean_value(true));
    launch.info(kCapabilityEmbedding,
                "Embedding architecture detected: enabling embedding mode automatically.");
  }
  if (gemma2 || model.is_embedding_gemma) no_radix_no_chunks(launch, kCapabilityEmbedding);
}

void embedding_gemma(Launch& launch) {
  const Platform& platform = launch.platform();
  if (!launch.model().is_embedding_gemma) return;
  launch.declare(kCapabilityGemma, "is_embedding", boolean_value(true));
  no_radix_no_chunks(launch, kCapabilityGemma);
  launch.declare(kCapabilityGemma, "enable_tokenizer_batch_encode", boolean_value(true));
  const std::string prefill = launch.prefill_backend();
  const bool kernel = prefill.empty() || prefill == "fa3" || prefill == "fa4";
  if ((platform.sm90() || platform.sm100()) && kernel) {
    launch.declare(kCapabilityGemma, "prefill_only_disable_kv_cache", boolean_value(true));
    prefill_only_arguments(launch);
    if (launch.refused()) return;
  }
  launch.set_graph(kCapabilityGemma, GraphPhase::kDecode, "disabled");
  if (!platform.cuda()) {
    launch.set_graph(kCapabilityGemma, GraphPhase::kPrefill, "disabled");
  } else if (launch.graph().prefill != "disabled") {
    launch.set_graph(kCapabilityGemma, GraphPhase::kPrefill, "breakable");
  }
  launch.info(kCapabilityGemma,
              "EmbeddingGemma detected: disabling radix cache and chunked prefill; using breakable "
              "CUDA graph for CUDA prefill.");
}

void multimodal_chunks(Launch& launch) {
  const ModelFacts& model = launch.model();
  if (!model.is_multimodal || model.multimodal_chunked_prefill) return;
  launch.declare(kCapabilityChunks, "chunked_prefill_size", integer_value(-1));
  launch.info(
      kCapabilityChunks,
      fmt::format("Automatically turn off --chunked-prefill-size as it is not supported for "
                  "{}",
                  model.model_type));
}

// How a worker hands images, and a prefill server its cache, to others.
void transports(Launch& launch) {
  if (launch.text("mm_feature_transport") == "cuda_ipc") {
    launch.info(kMmTransport,
                "Using CUDA IPC for multimodal features: a pool on the base GPU. This reduces KV "
                "cache headroom; a full pool falls back to CPU transport.");
    const std::string* caching = launch.variable_text("SGLANG_USE_IPC_POOL_HANDLE_CACHE");
    const bool on = caching == nullptr || launch.variable("SGLANG_USE_IPC_POOL_HANDLE_CACHE");
    launch.info(kMmTransport,
                fmt::format("CUDA IPC pool-handle caching is {}.", on ? "enabled" : "disabled"));
  }
  const bool mooncake = launch.text("disaggregation_mode") != "null" &&
                        launch.text("disaggregation_transfer_backend") == "mooncake";
  if (mooncake && launch.unset("disaggregation_ib_device")) {
    launch.warn(kPdDevices,
                "No IB devices specified for Mooncake backend, falling back to auto discovery.");
  }
}

}  // namespace

void language_model_only(Launch& launch) {
  if (!launch.flag("language_model_only")) return;
  const Names& names = launch.profile().group("language_model_only");
  const ModelFacts& model = launch.model();
  if (launch.text("disaggregation_mode") != "null" && model.model_type != "deepseek_v41") {
    return launch.value_error(kLanguageModelOnly,
                              "--language-model-only is incompatible with --disaggregation-mode "
                              "prefill/decode");
  }
  const bool known = std::any_of(model.architectures.begin(), model.architectures.end(),
                                 [&](const std::string& name) { return contains(names, name); });
  if (known) return;
  launch.value_error(kLanguageModelOnly,
                     fmt::format("--language-model-only does not support {}. Supported: {}.",
                                 python_list(model.architectures), python_list(names)));
}

void diffusion_inference(Launch& launch) {
  const std::string algorithm = launch.text("dllm_algorithm");
  if (algorithm.empty()) return;
  if (std::find(kDiffusionAlgorithms.begin(), kDiffusionAlgorithms.end(), algorithm) ==
      kDiffusionAlgorithms.end()) {
    return launch.refuse("resolve", "RuntimeError", kDiffusionAlgorithm,
                         "Unknown diffusion LLM algorithm: " + algorithm);
  }
  diffusion_backend(launch);
  if (launch.platform().hip()) {
    launch.warn(kDiffusionFeatures,
                "Cuda graph is disabled for diffusion LLM inference on AMD GPUs");
    launch.disable_graphs(kDiffusionFeatures);
  }
  if (!launch.flag("disable_overlap_schedule")) {
    launch.warn(kDiffusionOverlap,
                "Overlap schedule is disabled because of using diffusion LLM inference");
    launch.declare(kDiffusionOverlap, "disable_overlap_schedule", boolean_value(true));
  }
  diffusion_page(launch);
  if (!launch.refused()) diffusion_flags(launch);
}

void model_capabilities(Launch& launch) {
  for (const auto& step :
       {hrm_text, embedding_mode, embedding_gemma, multimodal_chunks, transports}) {
    step(launch);
    if (launch.refused()) return;
  }
}

}  // namespace kernelpath::engines::sglang
