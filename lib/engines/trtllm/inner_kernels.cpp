#include "engines/trtllm/inner_kernels.h"

#include "engines/trtllm/backend_contract.h"
#include "engines/trtllm/flashinfer_kernels.h"
#include "engines/trtllm/fmha.h"
#include "engines/trtllm/model_defaults.h"
#include "engines/trtllm/rules_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::int64_t kDefaultBatch = 8;
// Batch sizes at which some library's answer changes (facts 7.1), and one beyond the last.
constexpr std::array<std::int64_t, 9> kBatches = {1, 2, 4, 5, 8, 16, 32, 64, 128};

FmhaLayer fmha_layer(const InnerKernelRequest& request) {
  const LayerContext& context = request.layers;
  const Request& asked = context.request;
  FmhaLayer out;
  out.sm = asked.device.capability->sm();
  out.num_heads = request.geometry.heads_per_rank;
  out.num_kv_heads = request.geometry.kv_heads_per_rank;
  out.head_dim = request.geometry.head_dim;
  if (asked.model.mla) {
    const config::Mla& mla = *asked.model.mla;
    out.mla = true;
    out.num_kv_heads = 1;
    out.kv_lora_rank = mla.kv_lora_rank.value;
    out.qk_rope_head_dim = mla.qk_rope_head_dim.value;
    out.head_dim = mla.kv_lora_rank.value_or(0) + mla.qk_rope_head_dim.value_or(0);
  }
  if (context.sparse) out.sparse_algorithm = context.sparse->algorithm;
  out.kv_cache_dtype = context.kv_dtype_asked;
  if (context.arguments.flag("enable_mla_skip_correction")) {
    out.skip_correction_threshold =
        context.arguments.number("mla_skip_correction_threshold").value_or(0);
  }
  out.flashinfer_available = asked.environment.available("flashinfer");
  out.cute_dsl_available = asked.environment.available("nvidia-cutlass-dsl");
  return out;
}

std::int64_t draft_tokens(const Arguments& arguments) {
  if (!arguments.text("speculative_config.decoding_type")) return 0;
  return arguments.integer("speculative_config.max_draft_len").value_or(1);
}

FmhaRequest fmha_request(const InnerKernelRequest& request, Phase phase, std::int64_t batch) {
  const LayerContext& context = request.layers;
  const std::int64_t drafts = draft_tokens(context.arguments);
  FmhaRequest out;
  out.q = context.dtype;
  out.kv = context.kv_dtype;
  out.output = context.dtype;
  out.tokens_per_block = context.arguments.integer("kv_cache_config.tokens_per_block").value_or(32);
  out.input = phase == Phase::kPrefill ? FmhaInput::kContextOnly : FmhaInput::kGenerationOnly;
  out.num_contexts = phase == Phase::kPrefill ? batch : 0;
  out.num_generations = phase == Phase::kDecode ? batch : 0;
  out.seq_len_q = 1 + drafts;
  out.beam_width = context.arguments.integer("max_beam_width").value_or(1);
  out.helix = context.arguments.integer("context_parallel_size").value_or(1) > 1;
  out.paged_context = use_paged_context_fmha(
      context.arguments.flag("enable_chunked_prefill"),
      context.arguments.flag("kv_cache_config.enable_block_reuse"), drafts > 0);
  return out;
}

// "1-4: fallback; 64 and more: cute_dsl_mla" for the batch sizes whose kernel is not `kernel`.
std::string other_batches(const InnerKernelRequest& request, const FmhaLayer& layer, Phase phase,
                          const std::optional<std::string>& libs, const std::string& kernel) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> runs;
  for (const std::int64_t batch : kBatches) {
    const FmhaSelection other = select_fmha(layer, fmha_request(request, phase, batch), libs);
    if (runs.empty() || runs.back().first != other.impl) runs.push_back({other.impl, {}});
    runs.back().second.push_back(batch);
  }
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& [impl, batches] = runs[i];
    if (impl == kernel) continue;
    if (!out.empty()) out += "; ";
    const bool last = i + 1 == runs.size();
    out += last ? fmt::format("batch {} and more: ", batches.front())
                : fmt::format("batch {} to {}: ", batches.front(), runs[i + 1].second.front() - 1);
    out += impl.empty() ? "no library" : impl;
  }
  return out;
}

KernelChoice fmha_choice(const FmhaSelection& selection) {
  KernelChoice out;
  out.kernel = selection.impl;
  for (const FmhaSelection::Unavailable& library : selection.unavailable) {
    out.rejected.push_back({library.library, "TRT-FMHA-UNAVAILABLE", library.reason});
  }
  for (const FmhaRefusal& refusal : selection.rejected) {
    const RuleInfo* rule = find_backend_rule("FMHA-" + refusal.rule);
    out.rejected.push_back({refusal.library, "TRT-FMHA-" + refusal.rule,
                            rule == nullptr ? refusal.rule : std::string(rule->summary)});
  }
  return out;
}

std::optional<EngineError> choose_fmha(const InnerKernelRequest& request, Phase phase,
                                       KernelChoice& choice, std::vector<Step>& steps) {
  const FmhaLayer layer = fmha_layer(request);
  const std::string* variable = request.layers.request.environment.variable("TLLM_FMHA_LIBS");
  const std::optional<std::string> libs =
      variable == nullptr ? std::nullopt : std::optional(*variable);
  const std::int64_t batch = request.layers.request.deployment.batch_size.value_or(kDefaultBatch);
  const FmhaSelection selection = select_fmha(layer, fmha_request(request, phase, batch), libs);
  append_steps(selection, steps);
  choice = fmha_choice(selection);
  if (selection.error) return selection.error;
  choice.note = other_batches(request, layer, phase, libs, selection.impl);
  if (!choice.note.empty()) {
    append_engine_step(
        {.rule = "TRT-KERNEL-BY-BATCH",
         .stage = Stage::kInnerKernel,
         .candidate = selection.impl,
         .reason = fmt::format("{} at batch {}; {}", phase_name(phase), batch, choice.note)},
        steps);
  }
  return std::nullopt;
}

std::optional<EngineError> choose_trtllm(const InnerKernelRequest& request, LayerGroup& group,
                                         std::vector<Step>& steps) {
  const LayerContext& context = request.layers;
  const FmhaLayer layer = fmha_layer(request);
  if (layer.skip_correction_threshold > 0) {
    append_steps(skip_correction_threshold(layer.sm, layer.mla, layer.skip_correction_threshold),
                 steps);
  }
  for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
    KernelChoice& choice = phase == Phase::kPrefill ? group.prefill : group.decode;
    auto error = choose_fmha(request, phase, choice, steps);
    if (error) return error;
  }
  if (!context.request.model.mla) return std::nullopt;
  const FlashMlaDecision flash_mla =
      enable_flash_mla(context.backend, *context.request.device.capability, layer.kv_lora_rank,
                       layer.qk_rope_head_dim);
  append_steps(flash_mla, steps);
  if (flash_mla.enabled && group.decode.kernel == "fallback") {
    group.decode.kernel = "fallback (FlashMLA)";
  }
  return std::nullopt;
}

std::optional<EngineError> choose_flashinfer(const InnerKernelRequest& request, LayerGroup& group,
                                             std::vector<Step>& steps) {
  const LayerContext& context = request.layers;
  if (context.request.model.mla) {
    const FlashInferMlaKernels kernels = flashinfer_mla_kernels();
    group.prefill.kernel = std::string(kernels.context);
    group.prefill.note = fmt::format("cached context: {}", kernels.cached_context);
    group.decode.kernel = std::string(kernels.generation);
    return std::nullopt;
  }
  const FlashInferDecision decision =
      flashinfer_kernels({.has_kv_cache_manager = request.layer.kind != config::LayerKind::kEncoder,
                          .capability = *context.request.device.capability,
                          .kernel = std::string(flashinfer_kernel_of(context.architecture)),
                          .num_heads = request.geometry.heads_per_rank,
                          .num_kv_heads = request.geometry.kv_heads_per_rank,
                          .head_dim = request.geometry.head_dim,
                          .cuda_graph = true,  // cuda_graph_config has a default, so graphs are on
                          .fp8_kv = context.kv_dtype == DataType::kFp8,
                          .kv_shared = request.layer.shares_kv});
  append_steps(decision, steps);
  if (decision.error) return decision.error;
  if (decision.prefill) {
    group.prefill.kernel =
        fmt::format("{} ({})", decision.prefill->backend, decision.prefill->wrapper);
  }
  if (decision.decode) {
    group.decode.kernel =
        fmt::format("{} ({})", *decision.decode,
                    decision.use_tensor_cores.value_or(false) ? "tensor cores" : "CUDA cores");
  }
  if (request.layer.kind == config::LayerKind::kSliding && request.layer.window) {
    group.prefill.note =
        fmt::format("window passed as {}", flashinfer_window_left(*request.layer.window));
  }
  return std::nullopt;
}

}  // namespace

std::optional<EngineError> choose_inner_kernels(const InnerKernelRequest& request,
                                                LayerGroup& group, std::vector<Step>& steps) {
  if (inherits_from(group.backend, "TrtllmAttention")) {
    return choose_trtllm(request, group, steps);
  }
  if (inherits_from(group.backend, "FlashInferAttention")) {
    return choose_flashinfer(request, group, steps);
  }
  // VANILLA and the sparse classes of their own run what their class runs; nothing is chosen
  // inside.
  const std::string own = group.backend == "VanillaAttention" ? "torch" : group.backend;
  group.prefill.kernel = own;
  group.decode.kernel = own;
  return std::nullopt;
}

}  // namespace kernelpath::engines::trtllm
