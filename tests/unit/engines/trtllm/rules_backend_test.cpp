#include "engines/trtllm/rules_backend.h"

#include "engines/trtllm/attention_module.h"
#include "engines/trtllm/flashinfer_kernels.h"
#include "engines/trtllm/fmha.h"
#include "engines/trtllm/kv_cache.h"
#include "engines/trtllm/model_config_rules.h"
#include "engines/trtllm/model_defaults.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kernelpath::engines::trtllm {
namespace {

using Steps = std::vector<Step>;

void dispatch_scenarios(Steps& steps) {
  DispatchRequest request;
  request.name = "TRTLLM";
  append_steps(get_attention_backend(request), steps);
  request.sparse.emplace().sm = 80;
  for (const char* name : {"TRTLLM", "VANILLA", "FLASHINFER", "foo"}) {
    request.name = name;
    for (const char* algorithm : {"nope", "csa2"}) {
      request.sparse->algorithm = algorithm;
      append_steps(get_attention_backend(request), steps);
    }
  }
  request.variant = Variant::kSparseStrictFallback;
  append_steps(get_attention_backend(request), steps);
  request.name = "TRTLLM";
  request.sparse->sm = 90;
  append_steps(get_attention_backend(request), steps);
  request.sparse->algorithm = "minimax_m3";
  request.sparse->implementation = "msa";
  append_steps(get_attention_backend(request), steps);
  append_steps(sparse_cache_manager("dsa", true), steps);
  append_steps(sparse_cache_manager("qsa", false), steps);
  append_steps(sparse_cache_manager("nope", false), steps);
}

void instance_scenarios(Steps& steps) {
  CreateAttentionRequest request;
  request.dispatch.name = "VANILLA";
  request.attention_chunk_size = 8192;
  append_steps(create_attention(request), steps);
  request.attention_chunk_size.reset();
  request.mla.emplace();
  append_steps(create_attention(request), steps);
  request.mla->q_lora_rank = 0;
  append_steps(create_attention(request), steps);
  request.dispatch.sparse.emplace().algorithm = "minimax_m3";
  append_steps(create_attention(request), steps);
  request.mla.reset();
  request.flashinfer_mla_kernel = "trtllm-gen";
  request.dispatch.variant = Variant::kSparseStrictFallback;
  append_steps(create_attention(request), steps);
}

void module_scenarios(Steps& steps) {
  ModuleGeometryRequest geometry;
  geometry.hidden_size = 4096;
  geometry.num_heads = 32;
  geometry.num_kv_heads = 8;
  for (const std::int64_t tp : {3, 16}) {
    geometry.tp = tp;
    append_steps(module_geometry(geometry), steps);
  }
  geometry.cp = 2;
  geometry.cp_type = "STAR";
  append_steps(module_geometry(geometry), steps);
  append_steps(skip_correction_threshold(90, true, 8), steps);
  for (const char* backend_class : {"TrtllmAttention", "VanillaAttention"}) {
    for (const bool evicting : {false, true}) {
      append_steps(rope_gate({.backend_class = backend_class,
                              .rope_fusion = true,
                              .changes_physical_kv_length = evicting,
                              .pos_embd = "rope"}),
                   steps);
    }
  }
  for (const char* backend : {"TRTLLM", "trtllm", "VANILLA"}) {
    append_steps(llama4_inferred_max_seq_len(backend, 131072), steps);
    for (const int sm : {90, 100}) {
      for (const std::int64_t length : {4096, 131072}) {
        append_steps(llama4_chunk({.attn_backend = backend,
                                   .sm = sm,
                                   .spec_config = true,
                                   .max_seq_len = length,
                                   .attention_chunk_size = 8192}),
                     steps);
      }
    }
  }
  append_steps(enable_flash_mla("TRTLLM", {9, 0}, 512, 64), steps);
}

void flashinfer_scenarios(Steps& steps) {
  FlashInferRequest request;
  request.num_heads = request.num_kv_heads = 8;
  request.kernel = "trtllm-gen";
  request.fp8_kv = request.custom_mask = request.kv_shared = true;
  append_steps(flashinfer_kernels(request), steps);
  request.multi_item = true;
  append_steps(flashinfer_kernels(request), steps);
  request.has_kv_cache_manager = false;
  append_steps(flashinfer_kernels(request), steps);
  request.fp8_kv = false;
  request.cuda_graph = true;
  append_steps(flashinfer_kernels(request), steps);
}

void fmha_scenarios(Steps& steps) {
  FmhaLayer layer;
  layer.sm = 103;
  layer.num_heads = 32;
  layer.num_kv_heads = 8;
  layer.head_dim = 64;
  FmhaRequest request;
  request.num_contexts = 8;
  request.num_generations = 8;
  append_steps(select_fmha(layer, request, std::nullopt), steps);
  for (const char* libs : {"+", "nope", "fallback,+prims_ts", "prims_ts"}) {
    append_steps(select_fmha(layer, request, libs), steps);
  }
  request.paged_context = true;
  request.fused_context_kernel_exists = false;
  append_steps(select_fmha(layer, request, "fallback"), steps);
  layer.mla = true;
  append_steps(select_fmha(layer, request, std::nullopt), steps);
}

using Mutation = void (*)(FmhaLayer&, FmhaRequest&);

// Each turns an ordinary call into one that some library refuses.
const Mutation kMutations[] = {
    [](FmhaLayer&, FmhaRequest& r) {
      r.helix = true;
      r.seq_len_q = 2;
    },
    [](FmhaLayer& l, FmhaRequest&) { l.sparse_algorithm = "dsa"; },
    [](FmhaLayer&, FmhaRequest& r) { r.relative_attention_bias = true; },
    [](FmhaLayer&, FmhaRequest& r) { r.spec_tree = true; },
    [](FmhaLayer&, FmhaRequest& r) { r.paged = false; },
    [](FmhaLayer&, FmhaRequest& r) { r.fused_qkv = false; },
    [](FmhaLayer&, FmhaRequest& r) { r.q = DataType::kFp32; },
    [](FmhaLayer&, FmhaRequest& r) { r.q = DataType::kFp8; },
    [](FmhaLayer&, FmhaRequest& r) { r.kv = DataType::kFp32; },
    [](FmhaLayer&, FmhaRequest& r) { r.kv = DataType::kFp16; },
    [](FmhaLayer&, FmhaRequest& r) { r.kv = DataType::kFp8; },
    [](FmhaLayer&, FmhaRequest& r) { r.output = DataType::kNvfp4; },
    [](FmhaLayer& l, FmhaRequest&) { l.head_dim = 80; },
    [](FmhaLayer&, FmhaRequest& r) { r.custom_mask = true; },
    [](FmhaLayer&, FmhaRequest& r) { r.alibi = true; },
    [](FmhaLayer&, FmhaRequest& r) { r.beam_width = 4; },
    [](FmhaLayer&, FmhaRequest& r) { r.tokens_per_block = 4; },
    [](FmhaLayer&, FmhaRequest& r) { r.tokens_per_block = 128; },
    [](FmhaLayer& l, FmhaRequest&) { l.num_heads = 264; },
    [](FmhaLayer&, FmhaRequest& r) { r.update_kv_cache = false; },
    [](FmhaLayer&, FmhaRequest& r) { r.num_generations = 0; },
    [](FmhaLayer&, FmhaRequest& r) { r.seq_len_q = 2; },
    [](FmhaLayer& l, FmhaRequest& r) {
      l.num_heads = 128;
      r.kv = DataType::kFp8;
    },
    [](FmhaLayer& l, FmhaRequest& r) {
      l.mla = true;
      l.kv_lora_rank = 512;
      l.qk_rope_head_dim = 64;
      l.head_dim = 576;
      r.input = FmhaInput::kGenerationOnly;
      r.num_contexts = 0;
    },
    [](FmhaLayer& l, FmhaRequest&) { l.kv_lora_rank = 448; },
};

void add_refusals(const FmhaLayer& layer, const FmhaRequest& request, FmhaSelection& selection) {
  for (const FmhaLibrary& library : fmha_libraries()) {
    for (const FmhaPhase phase : {FmhaPhase::kWhole, FmhaPhase::kContext, FmhaPhase::kGeneration}) {
      const std::string_view id = fmha_refusal(library.name, layer, request, phase);
      if (!id.empty()) selection.rejected.push_back({std::string(library.name), std::string(id)});
    }
  }
}

// What the libraries really say to every pair of mutations.
void fmha_refusal_scenarios(Steps& steps) {
  FmhaSelection selection;
  selection.impl = "fallback";
  for (const Mutation first : kMutations) {
    for (const Mutation second : kMutations) {
      FmhaLayer layer;
      layer.sm = 100;
      layer.num_heads = 32;
      layer.num_kv_heads = 8;
      layer.head_dim = 128;
      FmhaRequest request;
      request.num_contexts = request.num_generations = 2;
      first(layer, request);
      second(layer, request);
      add_refusals(layer, request, selection);
    }
  }
  append_steps(selection, steps);
}

void memory_scenarios(Steps& steps) {
  KvGeometry geometry;
  geometry.num_layers = 1;
  geometry.head_dim = 3;
  geometry.num_kv_heads = 1;
  geometry.tp = 2;
  append_steps(kv_bytes_per_token(geometry).value(), steps);
  geometry.dtype = DataType::kNvfp4;
  append_steps(kv_bytes_per_token(geometry).value(), steps);
  geometry.kv_heads_per_layer = {1, 1};
  append_steps(kv_bytes_per_token(geometry).value(), steps);
  geometry.mla = true;
  append_steps(kv_bytes_per_token(geometry).value(), steps);
  KvPoolRequest pool;
  pool.total_bytes = 1'000'000;
  pool.estimate_bytes_per_token = pool.runtime_bytes_per_token = 1;
  pool.max_tokens = 5;
  append_steps(kv_pool(pool).value(), steps);
  pool.distinct_windows = 2;
  append_steps(kv_pool(pool).value(), steps);
  pool.free_gpu_memory_fraction = 1;
  append_steps(kv_pool(pool).value(), steps);
}

void config_scenarios(Steps& steps) {
  config::ModelConfig model;
  model.has_architectures = true;
  model.is_encoder_decoder.value = true;
  ModelConfigOptions options;
  options.allreduce_strategy = "nope";
  for (const char* architecture :
       {"DeepseekV32ForCausalLM", "DeepseekV4ForCausalLM", "BertForSequenceClassification"}) {
    model.architectures = {architecture};
    append_steps(model_config_post_init(model, options), steps);
  }
  model.sparse.emplace().compress_ratios = {4};
  model.architectures = {"DeepseekV4ForCausalLM"};
  append_steps(model_config_post_init(model, options), steps);
  model.architectures = {"DeepseekV41ForCausalLM"};
  model.model_type.value = "deepseek_v41";
  append_steps(model_config_post_init(model, options), steps);
  options.sparse.emplace().algorithm = "rocket";
  append_steps(model_config_post_init(model, options), steps);
  append_steps(infer_max_seq_len(model), steps);
  const std::vector<std::pair<std::string, std::string>> user = {{"attn_backend", "TRTLLM"}};
  append_steps(merge_model_defaults("Gemma4ForCausalLM", user), steps);
  append_steps(merge_model_defaults("KimiLinearForCausalLM", user), steps);
}

TEST(BackendRules, EveryRule_IsEmittedAndEveryStepHasItsRule) {
  Steps steps;
  dispatch_scenarios(steps);
  instance_scenarios(steps);
  module_scenarios(steps);
  flashinfer_scenarios(steps);
  fmha_scenarios(steps);
  fmha_refusal_scenarios(steps);
  memory_scenarios(steps);
  config_scenarios(steps);
  std::set<std::string> emitted;
  for (const Step& step : steps) {
    emitted.insert(step.rule);
    EXPECT_NE(find_backend_rule(step.rule), nullptr) << step.rule;
    EXPECT_FALSE(step.reason.empty()) << step.rule;
    EXPECT_EQ(step.source.project, "TensorRT-LLM") << step.rule;
  }
  for (const RuleInfo& rule : backend_rules()) {
    EXPECT_TRUE(emitted.contains(std::string(rule.id))) << rule.id << " is emitted by no scenario";
  }
}

TEST(BackendRules, Ids_AreUniqueAndRowsComplete) {
  std::set<std::string_view> ids;
  for (const RuleInfo& rule : backend_rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_EQ(rule.id.substr(0, 4), "TRT-");
    EXPECT_FALSE(rule.summary.empty() || rule.why.empty()) << rule.id;
    EXPECT_FALSE(rule.file.empty() || rule.version.empty()) << rule.id;
  }
}

TEST(FindBackendRule, EngineIdsAndDetails_AreUnderstood) {
  EXPECT_EQ(find_backend_rule("FALLBACK-TRTLLM")->id, "TRT-ATTN-FALLBACK");
  EXPECT_EQ(find_backend_rule("MLA-GEOMETRY:q_lora_rank")->id, "TRT-MLA-GEOMETRY");
  EXPECT_EQ(find_backend_rule("TRT-FMHA-TREE")->id, "TRT-FMHA-TREE");
  EXPECT_EQ(find_backend_rule("NOPE"), nullptr);
  EXPECT_EQ(find_backend_rule(""), nullptr);
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
