#include "engines/llamacpp/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::int64_t kCellPadding = 256;

std::int64_t padded(std::int64_t value) {
  return (value + kCellPadding - 1) / kCellPadding * kCellPadding;
}

// `length` of each layer must fill whole blocks of a quantised type.
std::string block_error(const Hparams& hparams, const checkpoint::GgmlType& type, bool values) {
  if (!type.quantized) return {};
  for (std::int64_t layer = 0; layer < hparams.n_layer(); ++layer) {
    const std::int64_t length =
        values ? hparams.n_embd_head_v(layer) : hparams.n_embd_head_k(layer);
    if (length % type.block == 0) continue;
    return fmt::format("{} cache type {} with block size {} does not divide n_embd_head_{}={}",
                       values ? 'V' : 'K', type.name, type.block, values ? 'v' : 'k', length);
  }
  return {};
}

// The checks and rewrites before a context is made; they end with what flash attention is.
class FlashDecision {
 public:
  FlashDecision(const LoadedModel& model, const ContextParams& params, ContextPlan& plan)
      : model_(model), params_(params), plan_(plan), asked_(params.flash_attn) {}

  void decide() {
    if (!rewrite() || !check_types()) return;
    plan_.v_transposed = asked_ == FlashAttention::kOff;
    plan_.flash_attn = asked_ != FlashAttention::kOff;
    if (asked_ != FlashAttention::kAuto) return;
    plan_.flash_rule =
        params_.flash_attn_supported ? FlashRule::kProbed : FlashRule::kProbedMissing;
    plan_.flash_attn = params_.flash_attn_supported;
  }

 private:
  void set(FlashAttention asked, FlashRule rule) {
    asked_ = asked;
    plan_.flash_rule = rule;
  }

  bool refuse(std::string error) {
    plan_.error = std::move(error);
    return false;
  }

  bool rewrite() {
    plan_.flash_rule = asked_ == FlashAttention::kOn ? FlashRule::kAsked : FlashRule::kOff;
    if (asked_ != FlashAttention::kOff && model_.architecture->constant == "LLM_ARCH_GROK") {
      set(FlashAttention::kOff, FlashRule::kGrok);
    }
    if (!params_.tensor_split) return true;
    if (asked_ == FlashAttention::kAuto) set(FlashAttention::kOn, FlashRule::kTensorSplit);
    if (asked_ == FlashAttention::kOn) return true;
    return refuse("SPLIT_MODE_TENSOR requires flash_attn to be enabled");
  }

  bool check_types() {
    const Hparams& hparams = model_.hparams;
    const bool one_type = hparams.is_mla() || model_.architecture->constant == "LLM_ARCH_DEEPSEEK4";
    if (one_type && params_.type_k != params_.type_v) {
      return refuse(fmt::format("model does not support different K ({}) and V ({}) cache types",
                                params_.type_k->name, params_.type_v->name));
    }
    if (params_.type_v->quantized && asked_ == FlashAttention::kAuto) {
      set(FlashAttention::kOn, FlashRule::kQuantizedV);
    }
    if (params_.type_v->quantized && asked_ == FlashAttention::kOff) {
      return refuse("quantized V cache requires flash_attn to be enabled");
    }
    if (asked_ == FlashAttention::kOff) return true;
    plan_.error = block_error(hparams, *params_.type_k, false);
    if (plan_.error.empty()) plan_.error = block_error(hparams, *params_.type_v, true);
    return plan_.error.empty();
  }

  const LoadedModel& model_;
  const ContextParams& params_;
  ContextPlan& plan_;
  FlashAttention asked_;
};

// Sizes are 32-bit in the engine; larger ones would wrap there.
std::string size_error(const Hparams& hparams, const ContextParams& params) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max() - kCellPadding;
  if (params.n_batch == 0 && params.n_ubatch == 0) {
    return "n_batch and n_ubatch cannot both be zero";
  }
  if (params.n_ctx == 0 && hparams.n_ctx_train == 0) {
    return "n_ctx and model->hparams.n_ctx_train cannot both be zero";
  }
  const std::int64_t n_ctx = params.n_ctx == 0 ? hparams.n_ctx_train : params.n_ctx;
  if (n_ctx > kMost) return fmt::format("n_ctx {} does not fit 32 bits", n_ctx);
  return {};
}

void size_context(const Hparams& hparams, const ContextParams& params, ContextPlan& plan) {
  ContextSizes& sizes = plan.sizes;
  const std::int64_t sequences = std::max<std::int64_t>(1, params.n_seq_max);
  sizes.n_ctx = params.n_ctx == 0 ? hparams.n_ctx_train : params.n_ctx;
  plan.causal = hparams.causal_attn != 0;
  sizes.n_batch = plan.causal ? std::min(sizes.n_ctx, params.n_batch) : params.n_batch;
  sizes.n_ubatch = std::min(sizes.n_batch, params.n_ubatch == 0 ? params.n_batch : params.n_ubatch);
  sizes.n_ctx = padded(sizes.n_ctx);
  sizes.n_ctx_seq = sizes.n_ctx;
  if (params.kv_unified) return;
  sizes.n_ctx_seq = padded(sizes.n_ctx / sequences);
  sizes.grown = sizes.n_ctx != sizes.n_ctx_seq * sequences;
  sizes.n_ctx = sizes.n_ctx_seq * sequences;
}

// A draft that shares the target's context cannot have one alone.
std::string companion_error(const LoadedModel& model) {
  if (model.architecture->constant != "LLM_ARCH_GEMMA4_ASSISTANT") return {};
  return "failed to initialize the context: Gemma4Assistant requires ctx_other to be set (this "
         "warning is normal during memory fitting)";
}

}  // namespace

ContextPlan plan_context(const LoadedModel& model, const ContextParams& params) {
  ContextPlan plan;
  plan.error = size_error(model.hparams, params);
  if (plan.error.empty()) FlashDecision(model, params, plan).decide();
  if (!plan.error.empty()) return plan;
  if (params.n_seq_max > kMaxSequences) {
    plan.error =
        fmt::format("failed to initialize the context: n_seq_max must be <= {}", kMaxSequences);
    return plan;
  }
  plan.error = companion_error(model);
  if (plan.error.empty()) size_context(model.hparams, params, plan);
  return plan;
}

}  // namespace kernelpath::engines::llamacpp
