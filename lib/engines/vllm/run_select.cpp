// The backend of each layer: every layer asks the selector by itself, when it is built.
// Source: vllm/model_executor/layers/attention/*.py.

#include "engines/vllm/flash_attn_version.h"
#include "engines/vllm/layer_plan.h"
#include "engines/vllm/mla_prefill.h"
#include "engines/vllm/selection_steps.h"
#include "engines/vllm/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kPackedLatent = "fp8_ds_mla";
constexpr std::string_view kFlashMlaSparse = "FLASHMLA_SPARSE";

bool is_flash_attention(std::string_view member) {
  return member == "FLASH_ATTN" || member == "FLASH_ATTN_DIFFKV";
}

class LayerBuilder {
 public:
  explicit LayerBuilder(RunState& state) : state_(state), model_(state.question.model) {}

  bool build(PlannedLayer& planned) {
    BuiltLayer& layer = planned.layer;
    if (layer.role == LayerRole::kState || layer.role == LayerRole::kIndexer ||
        layer.role == LayerRole::kWindow) {
      state_.out.layers.push_back(std::move(layer));
      return true;
    }
    set_kv_dtype(layer);
    if (!choose(planned)) return false;
    turn_prefix_caching_off(layer);
    if (!check_accepted(planned)) return false;
    if (layer.role == LayerRole::kMla && !finish_latent(layer)) return false;
    set_flash_attn_version(planned);
    state_.out.layers.push_back(std::move(layer));
    return true;
  }

  // Layers that share a cache come after those that they share it with.
  bool check_sharing(std::int64_t layers) {
    const auto& built = state_.out.layers;
    const bool flex =
        std::ranges::find(built, "FLEX_ATTENTION", &BuiltLayer::reported_backend) != built.end();
    return layers == 0 || !flex || refuse_flex("kv sharing");
  }

 private:
  // The run's, unless the layer is named in the skip list; a scheme of the checkpoint counts where
  // nobody asked for a type.
  void set_kv_dtype(BuiltLayer& layer) {
    RunConfig& run = state_.run();
    const auto& quantization = model_.quantization;
    const bool scheme =
        quantization.kv_cache_scheme && quantization.method.value_or("") == "compressed-tensors";
    if (scheme && run.cache_dtype == "auto") {
      run.cache_dtype = "fp8";
      state_.settings.run_kv_dtype = run.cache_dtype;
      state_.note("VLLM-KV-DTYPE-SCHEME", "kv_cache_dtype",
                  "the checkpoint's kv_cache_scheme makes the cache fp8");
    }
    layer.kv_dtype = run.cache_dtype;
    const bool by_window = layer.window && std::ranges::find(run.skip_layers, "sliding_window") !=
                                               run.skip_layers.end();
    const bool by_index =
        std::ranges::find(run.skip_layers, std::to_string(layer.index)) != run.skip_layers.end();
    if ((by_window || by_index) && layer.role != LayerRole::kMla) layer.kv_dtype = "auto";
  }

  [[nodiscard]] bool has_head_scales() const {
    const auto& scheme = model_.quantization.kv_cache_scheme;
    return scheme && scheme->strategy == "attn_head" &&
           model_.quantization.method.value_or("") == "compressed-tensors";
  }

  [[nodiscard]] SelectorConfig question_of(const PlannedLayer& planned) const {
    const BuiltLayer& layer = planned.layer;
    const RunConfig& run = state_.run();
    SelectorConfig config;
    config.head_size = layer.head_size;
    config.dtype = run.dtype;
    config.kv_dtype = layer.kv_dtype;
    if (run.user_block_size) config.block_size = run.block_size;
    config.use_mla = layer.role == LayerRole::kMla;
    config.use_sparse = layer.sparse;
    config.attention_type = planned.attention_type;
    config.use_non_causal = run.use_non_causal;
    config.use_batch_invariant = state_.flags().batch_invariant;
    config.use_kv_connector = state_.flags().kv_connector;
    config.use_dcp = run.dcp > 1;
    config.use_pcp = run.pcp > 1;
    config.use_rswa = state_.settings.model && state_.settings.model->rswa_window;
    if (planned.wrapped || config.use_mla) return config;
    config.has_sink = layer.sink;
    config.use_mm_prefix = state_.view().mm_prefix;
    config.use_per_head_quant_scales = has_head_scales();
    config.has_sliding_window = layer.window.has_value();
    return config;
  }

  // The KV kind by which a backend can be set since 0.33.
  static std::string_view kind_of(const SelectorConfig& config) {
    if (config.attention_type == "encoder_only") return "encoder_only_attention";
    if (config.attention_type == "encoder_decoder") return "cross_attention";
    if (config.use_mla) return "mla_attention";
    return config.has_sliding_window ? "sliding_window" : "full_attention";
  }

  bool choose(PlannedLayer& planned) {
    BuiltLayer& layer = planned.layer;
    if (!planned.fixed_backend.empty()) {
      const BackendMember* member = state_.profile().find_member(planned.fixed_backend);
      if (member == nullptr || member->backend == nullptr) return true;
      take(*member->backend, member->name, planned);
      if (!planned.own_class.empty()) layer.class_name = planned.own_class;
      if (!planned.own_implementation.empty()) layer.implementation = planned.own_implementation;
      return true;
    }
    SelectorRequest request{.backend = state_.run().attention_backend,
                            .config = question_of(planned),
                            .registered = state_.question.registered_backends};
    if (layer.role == LayerRole::kMla) request.num_heads = layer.num_heads;
    for (const auto& [kind, backend] : state_.run().backend_per_kind) {
      if (kind == kind_of(request.config)) request.backend = backend;
    }
    const Selection& selection = select(request);
    if (selection.error) {
      return state_.raise(model_error(selection.error->type, rule_of_fault(selection.error->fault),
                                      selection.error->text));
    }
    if (planned.latent_sink && gives_way_to_sink(selection, request)) {
      const BackendMember* member = state_.profile().find_member(kFlashMlaSparse);
      take(*member->backend, member->name, planned);
      layer.class_name = "HYV4FlashMLASparseBackend";
      state_.note("VLLM-HYV4-SINK", layer.class_name,
                  fmt::format("{} has no sinks for latent attention", selection.backend));
      return true;
    }
    selections().back().layers.push_back(state_.out.layers.size());
    if (selection.row != nullptr) {
      take(*selection.row, selection.member, planned);
    } else {
      layer.reported_backend = selection.backend;
      layer.class_name = planned.prefix + selection.class_name;
      member_ = selection.member;
    }
    return true;
  }

  // Whether the chosen backend has no sink and FlashMLA's, which has one, would run here.
  [[nodiscard]] bool gives_way_to_sink(const Selection& selection,
                                       const SelectorRequest& request) const {
    const bool has_sink =
        selection.row != nullptr && asks(state_.context(), *selection.row, Question::kSink);
    if (has_sink) return false;
    SelectorRequest other = request;
    other.backend = std::string(kFlashMlaSparse);
    const bool runs = !select_backend(state_.context(), other).error;
    return runs && state_.profile().find_member(kFlashMlaSparse)->backend != nullptr;
  }

  std::vector<LayerSelection>& selections() { return state_.out.selections; }

  // One answer to every equal question; the one used moves to the end.
  const Selection& select(const SelectorRequest& request) {
    const auto same = [&](const LayerSelection& known) {
      return known.request.backend == request.backend &&
             known.request.num_heads == request.num_heads &&
             known.request.config == request.config && known.run_kv_dtype == run_kv_dtype();
    };
    const auto found = std::ranges::find_if(selections(), same);
    if (found != selections().end()) {
      std::rotate(found, found + 1, selections().end());
      return selections().back().selection;
    }
    selections().push_back({.request = request,
                            .selection = select_backend(state_.context(), request),
                            .layers = {},
                            .run_kv_dtype = run_kv_dtype()});
    return selections().back().selection;
  }

  [[nodiscard]] const std::string& run_kv_dtype() const { return state_.settings.run_kv_dtype; }

  void take(const BackendClass& backend, const std::string& member, PlannedLayer& planned) {
    BuiltLayer& layer = planned.layer;
    member_ = member;
    layer.backend = &backend;
    layer.reported_backend = backend.reported_name;
    layer.class_name = planned.prefix + backend.class_name;
    if (backend.implementation) layer.implementation = backend.implementation->class_name;
    if (layer.role == LayerRole::kCross) layer.implementation = "CrossAttentionImpl";
  }

  // Two backends cannot reuse a prefix's cache and be batch invariant.
  void turn_prefix_caching_off(const BuiltLayer& layer) {
    RunConfig& run = state_.run();
    const bool unable =
        layer.reported_backend == "FLASHINFER" || layer.reported_backend == "TRITON_MLA";
    if (!run.prefix_caching || !state_.flags().batch_invariant || !unable) return;
    run.prefix_caching = false;
    state_.note(
        "VLLM-BATCH-INVARIANT-PREFIX", "enable_prefix_caching",
        fmt::format("{} with batch invariance: prefix caching is off", layer.reported_backend),
        Severity::kWarn);
  }

  [[nodiscard]] std::int64_t rotary_size(const BuiltLayer& layer) const {
    const double share = model_.rope.partial_rotary_factor.value_or(1.0);
    return static_cast<std::int64_t>(static_cast<double>(layer.head_size) * share);
  }
  [[nodiscard]] bool fits_octave(const BuiltLayer& layer) const {
    return layer.head_size == 256 && rotary_size(layer) == 64;
  }

  // What an accepted backend refuses when its layer is built.
  bool check_accepted(const PlannedLayer& planned) {
    const BuiltLayer& layer = planned.layer;
    if (planned.alibi_sqrt && layer.backend != nullptr &&
        !asks(state_.context(), *layer.backend, Question::kAlibiSqrt)) {
      return state_.raise(model_error(
          "ValueError", "VLLM-ALIBI-SQRT",
          fmt::format("use_alibi_sqrt is not supported by backend {}.", layer.reported_backend)));
    }
    if (layer.reported_backend == "ROCM_OCTAVE" && !fits_octave(layer)) {
      return state_.raise(model_error(
          "NotImplementedError", "VLLM-OCTAVE-SIZES",
          fmt::format("ROCM_OCTAVE kernels need ROCm, head_size=256 and 64 rotary dims; got "
                      "head_size={}, rotary dims={}",
                      layer.head_size, rotary_size(layer))));
    }
    if (planned.lookback && layer.reported_backend != "TRITON_ATTN") {
      return state_.raise(model_error(
          "AssertionError", "VLLM-CHUNK-LOOKBACK",
          fmt::format("Chunked attention with lookback requires the Triton backend, but got {}.",
                      layer.reported_backend)));
    }
    if (layer.reported_backend == "FLEX_ATTENTION" && (planned.soft_cap || planned.alibi)) {
      return refuse_flex(planned.alibi ? "alibi slopes" : "logits soft cap");
    }
    return check_scales(layer);
  }

  bool refuse_flex(std::string_view lacking) {
    return state_.raise(
        model_error("NotImplementedError", "VLLM-FLEX-REFUSED",
                    fmt::format("FlexAttention does not support {} yet.", lacking)));
  }

  // fp8_e5m2 does not go with a checkpoint that brings scales for its cache.
  bool check_scales(const BuiltLayer& layer) {
    const auto& quantization = model_.quantization;
    const std::string method = quantization.method.value_or("");
    const bool exempt = method == "compressed-tensors" && !quantization.kv_cache_scheme;
    if (layer.kv_dtype != "fp8_e5m2" || exempt || !scales_cache(method)) return true;
    return state_.raise(model_error("ValueError", "VLLM-KV-E5M2-SCALES",
                                    "fp8_e5m2 kv-cache is not supported with fp8 checkpoints."));
  }

  static bool scales_cache(std::string_view method) {
    return method == "fp8" || method == "modelopt" || method == "compressed-tensors";
  }

  // MLA: the cache's real format is known with the backend, and prefill has a backend of its own.
  bool finish_latent(BuiltLayer& layer) {
    rewrite_latent_dtype(layer);
    const bool bf16_sparse = state_.profile().at_least(0, 33) && state_.run().dcp > 1 &&
                             member_ == "FLASHMLA_SPARSE" && layer.kv_dtype != kPackedLatent;
    if (bf16_sparse) {
      return state_.raise(model_error("NotImplementedError", "VLLM-DCP-FLASHMLA-SPARSE",
                                      "DCP for FlashMLA sparse requires an fp8_ds_mla kv-cache; "
                                      "the bf16 sparse path is not supported under DCP."));
    }
    return choose_prefill(layer);
  }

  void rewrite_latent_dtype(BuiltLayer& layer) {
    const std::string& dtype = layer.kv_dtype;
    const bool packs = (member_ == "FLASHMLA_SPARSE" && dtype.starts_with("fp8")) ||
                       (member_ == "FLASHINFER_MLA_SPARSE_SM120" &&
                        (dtype == "auto" || dtype == "fp8" || dtype == "fp8_e4m3"));
    if (!packs || dtype == kPackedLatent) return;
    layer.kv_dtype = kPackedLatent;
    state_.run().cache_dtype = kPackedLatent;
    state_.settings.run_kv_dtype = kPackedLatent;
    state_.note("VLLM-MLA-PACKED", "kv_cache_dtype",
                fmt::format("{} keeps 656 bytes a token: fp8_ds_mla", layer.reported_backend),
                Severity::kWarn);
  }

  // Since 0.33 a sparse layer may go without.
  [[nodiscard]] bool has_dense_prefill(const BuiltLayer& layer) const {
    if (!layer.sparse || !state_.profile().at_least(0, 33)) return true;
    if (member_ == "FLASHINFER_MLA_SPARSE_SM120") return false;
    const bool no_rope = text_integer(model_, "qk_rope_head_dim").value_or(0) == 0;
    return !(member_ == "FLASHMLA_SPARSE" && no_rope && layer.kv_dtype == kPackedLatent);
  }

  bool choose_prefill(BuiltLayer& layer) {
    if (!has_dense_prefill(layer)) return true;
    const auto& asked = state_.flags().mla_prefill_backend;
    if (!state_.out.mla_prefill) {
      state_.out.mla_prefill = select_mla_prefill(state_.context(), asked, state_.run().dtype);
    }
    const Selection& selection = *state_.out.mla_prefill;
    if (!selection.error) {
      layer.mla_prefill = selection.backend;
      return true;
    }
    if (layer.sparse && !asked && state_.profile().at_least(0, 33)) return true;
    return state_.raise(
        model_error(selection.error->type, "VLLM-PREFILL-REFUSED", selection.error->text));
  }

  // The layer's own question, with what it knows; the selector asked with less.
  void set_flash_attn_version(PlannedLayer& planned) {
    BuiltLayer& layer = planned.layer;
    if (!is_flash_attention(member_)) return;
    const bool later = state_.profile().at_least(0, 33);
    const bool unequal = layer.head_size != layer.head_size_v;
    FlashAttnQuestion question{.head_size = layer.head_size, .requires_alibi = planned.alibi};
    if (unequal) question.head_size_v = layer.head_size_v;
    question.has_sinks = layer.sink && (later || unequal);
    question.requires_softcap = later && planned.soft_cap;
    question.supports_hd256 = later && !unequal;
    layer.fa_version = flash_attn_version(state_.context(), question);
  }

  RunState& state_;
  const config::ModelConfig& model_;
  std::string member_;  // enum name of the last choice
};

}  // namespace

bool build_and_select(RunState& state) {
  const std::string& module = state.out.model_class.module;
  if (module == "vllm.models.deepseek_v4") return plan_deepseek_v4(state);
  LayerPlan plan = plan_layers(state);
  std::ranges::move(plan.unknown, std::back_inserter(state.out.unknown));
  if (plan.error) return state.raise(std::move(*plan.error));
  if (plan.sharing > 0) {
    state.note("VLLM-LAYERS-SHARED", "layers",
               fmt::format("{} layers read the cache of an earlier layer", plan.sharing));
  }
  return build_layers(state, plan);
}

bool build_layers(RunState& state, LayerPlan& plan) {
  LayerBuilder builder(state);
  return std::ranges::all_of(plan.layers,
                             [&](PlannedLayer& planned) { return builder.build(planned); }) &&
         builder.check_sharing(plan.sharing);
}

}  // namespace kernelpath::engines::vllm
