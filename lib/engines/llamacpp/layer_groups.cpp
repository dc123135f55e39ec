#include "engines/llamacpp/layer_groups.h"

#include "engines/llamacpp/memory_accounts.h"
#include "engines/llamacpp/rules.h"
#include "engines/memory_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::string_view kFlashOp = "ggml_flash_attn_ext";
constexpr std::string_view kPlainOp = "ggml_soft_max_ext";

// Layers of a cache that make the same call.
using CallKey =
    std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

class GroupMaker {
 public:
  GroupMaker(const GroupContext& context, std::vector<Step>& steps)
      : context_(context), question_(context.question), steps_(steps) {}

  std::vector<LayerGroup> run() {
    for (const Cache& cache : question_.memory.caches) {
      const bool side = cache.role == "indexer" || cache.role == "csa" || cache.role == "hca";
      if (!side) add_cache(cache);
    }
    if (question_.memory.state) add_state(*question_.memory.state);
    add_rest();
    std::ranges::sort(out_, {}, [](const LayerGroup& group) { return group.layers.front(); });
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Hparams& hparams() const { return question_.model.hparams; }

  void add_cache(const Cache& cache) {
    std::map<CallKey, std::vector<std::size_t>> parts;
    for (std::size_t i = 0; i < cache.layers.size(); ++i) {
      const std::int64_t layer = cache.layers[i];
      if (cache.k_bytes[i] == 0 && cache.v_bytes[i] == 0) continue;  // a block without attention
      parts[{hparams().n_head(layer), hparams().n_head_kv(layer), hparams().n_embd_head_k(layer),
             hparams().n_embd_head_v(layer), cache.k_bytes[i], cache.v_bytes[i]}]
          .push_back(i);
    }
    for (const auto& [key, places] : parts) add_part(cache, places);
  }

  void add_part(const Cache& cache, const std::vector<std::size_t>& places) {
    const std::int64_t first = cache.layers[places.front()];
    LayerGroup group;
    group.kind = kind_of(first, cache);
    for (const std::size_t place : places) {
      group.layers.push_back(cache.layers[place]);
      covered_.insert(cache.layers[place]);
    }
    if (hparams().is_swa(first)) group.window = hparams().n_swa;
    group.backend = question_.plan.flash_attn ? kFlashOp : kPlainOp;
    group.kv = layout(cache, first);
    const std::int64_t cells = std::max<std::int64_t>(1, cache.cells * cache.streams);
    const std::int64_t bytes =
        saturating_sum(cache.k_bytes[places.front()], cache.v_bytes[places.front()]);
    group.kv_bytes_per_token =
        saturating_product({bytes / cells, static_cast<std::int64_t>(places.size())});
    for (const std::size_t place : places) {
      add_parts(group.kv_parts, cell_parts(question_, cache, place));
    }
    group.prefill = choose(cache, first, Phase::kPrefill);
    group.decode = choose(cache, first, Phase::kDecode);
    out_.push_back(std::move(group));
  }

  [[nodiscard]] config::LayerKind kind_of(std::int64_t layer, const Cache& cache) const {
    const auto& layers = context_.config.layers;
    if (hparams().is_swa(layer)) {
      return hparams().swa_type == WindowType::kChunked ? config::LayerKind::kChunked
                                                        : config::LayerKind::kSliding;
    }
    const bool sparse = cache.role == "main";
    const auto index = static_cast<std::size_t>(layer);
    if (!sparse && index < layers.size() && layers[index].kind == config::LayerKind::kSparse) {
      return config::LayerKind::kSparse;
    }
    return sparse ? config::LayerKind::kSparse : config::LayerKind::kFull;
  }

  [[nodiscard]] KvLayout layout(const Cache& cache, std::int64_t layer) const {
    const ContextParams& params = question_.params;
    const bool keys_only = hparams().is_mla() || cache.v_total() == 0;
    const bool one_type = keys_only || params.type_k == params.type_v;
    KvLayout out;
    out.dtype = one_type ? std::string(params.type_k->name)
                         : fmt::format("{}/{}", params.type_k->name, params.type_v->name);
    out.layout = cache.v_transposed ? "cells, V transposed" : "cells";
    out.shape =
        fmt::format("K [{}, {}, {}]", cache.streams, cache.cells, hparams().n_embd_k_gqa(layer));
    if (!keys_only) {
      out.shape += fmt::format(
          " V [{}, {}, {}]", cache.streams, cache.cells,
          cache.v_transposed ? hparams().n_embd_v_gqa_max() : hparams().n_embd_v_gqa(layer));
    }
    return out;
  }

  KernelChoice choose(const Cache& cache, std::int64_t layer, Phase phase) {
    if (!question_.plan.flash_attn) {
      return {.kernel = "matrix products and softmax", .rejected = {}, .note = {}};
    }
    if (context_.machine.place == Place::kCpu || !context_.kv_offload) {
      return {.kernel = "ggml CPU flash attention", .rejected = {}, .note = {}};
    }
    if (context_.machine.place == Place::kOther) return {};
    auto call = attention_call(question_, cache, layer, phase);
    if (!call) {
      return {.kernel = {}, .rejected = {}, .note = "the heads make no groups"};
    }
    call->cc = context_.machine.cc;
    return choice_of(*call, pick_cuda_kernel(context_.build, *call), phase);
  }

  KernelChoice choice_of(const AttentionCall& call, const KernelPick& pick, Phase phase) {
    KernelChoice out;
    if (pick.kernel == CudaKernel::kNone) {
      out.kernel = "ggml CPU flash attention";
      out.rejected.push_back({"CUDA flash attention", "LCPP-FA-ON-CPU", std::string(pick.refusal)});
      return out;
    }
    out.kernel = fmt::format("fattn-{}", short_name(pick.kernel));
    out.note = fmt::format("{} tokens x {} heads a block{}", pick.ncols1, pick.ncols2,
                           pick.sparse ? ", gathers visible positions" : "");
    if (pick.aborts) out.note = "no variant fits: the process would end";
    tell(call, pick, phase, out);
    return out;
  }

  static std::string_view short_name(CudaKernel kernel) {
    switch (kernel) {
      case CudaKernel::kVec:
        return "vec";
      case CudaKernel::kMma:
        return "mma-f16";
      default:
        return "tile";
    }
  }

  // Each sentence once.
  void tell_once(StepDraft draft) {
    if (!told_.insert(std::string(draft.rule) + draft.candidate + draft.reason).second) return;
    append_step(std::move(draft), steps_);
  }

  void tell(const AttentionCall& call, const KernelPick& pick, Phase phase,
            const KernelChoice& choice) {
    tell_once({.rule = "LCPP-KERNEL",
               .stage = Stage::kInnerKernel,
               .verdict = Verdict::kSelected,
               .candidate = choice.kernel,
               .reason = fmt::format("{}: head sizes {} and {}, {} heads of {} KV heads, {} "
                                     "tokens, {} cells",
                                     phase_name(phase), call.head_size_k, call.head_size_v,
                                     call.n_head, call.n_head_kv, call.n_q, call.n_kv)});
    if (pick.aborts) {
      tell_once({.rule = "LCPP-KERNEL-ABORTS",
                 .stage = Stage::kInnerKernel,
                 .verdict = Verdict::kRejected,
                 .severity = Severity::kError,
                 .candidate = choice.kernel,
                 .reason = fmt::format("{}: {} heads of a KV head", phase_name(phase),
                                       call.n_head / call.n_head_kv)});
    }
    if (!pick.k_converted && !pick.v_converted) return;
    tell_once({.rule = "LCPP-KERNEL-CONVERTS",
               .stage = Stage::kInnerKernel,
               .severity = pick.vec_fallback_f16 ? Severity::kWarn : Severity::kInfo,
               .candidate = choice.kernel,
               .reason = fmt::format("{}: {} keys and {} values", phase_name(phase),
                                     call.type_k->name, call.type_v->name)});
  }

  void add_state(const RecurrentState& state) {
    LayerGroup group;
    group.kind = question_.model.hparams.n_embd_head_kda != 0 || is_linear()
                     ? config::LayerKind::kLinear
                     : config::LayerKind::kMamba;
    for (const std::int64_t layer : state.layers) {
      // A layer with both (Falcon-H1) is shown with its attention.
      if (covered_.insert(layer).second) group.layers.push_back(layer);
    }
    if (group.layers.empty()) return;
    group.backend = "recurrent state, f32";
    out_.push_back(std::move(group));
  }

  [[nodiscard]] bool is_linear() const {
    return std::ranges::any_of(context_.config.layers, [](const config::Layer& layer) {
      return layer.kind == config::LayerKind::kLinear;
    });
  }

  // Layers that reuse another one's cache, and encoders' layers, which keep nothing.
  void add_rest() {
    const bool encoder = question_.memory.kind == MemoryKind::kNone;
    LayerGroup group;
    group.kind = encoder ? config::LayerKind::kEncoder : config::LayerKind::kNone;
    for (std::int64_t layer = 0; layer < hparams().n_layer(); ++layer) {
      if (!covered_.contains(layer)) group.layers.push_back(layer);
    }
    if (group.layers.empty()) return;
    const bool reuses = !encoder && hparams().n_layer_kv_from_start >= 0;
    if (reuses) group.kind = config::LayerKind::kFull;
    if (encoder || reuses) group.backend = question_.plan.flash_attn ? kFlashOp : kPlainOp;
    if (reuses) group.decode.note = group.prefill.note = "reads an earlier layer's cache";
    out_.push_back(std::move(group));
  }

  const GroupContext& context_;
  const AttentionQuestion& question_;
  std::vector<Step>& steps_;
  std::vector<LayerGroup> out_;
  std::set<std::int64_t> covered_;
  std::set<std::string> told_;
};

}  // namespace

std::vector<LayerGroup> make_groups(const GroupContext& context, std::vector<Step>& steps) {
  return GroupMaker(context, steps).run();
}

}  // namespace kernelpath::engines::llamacpp
