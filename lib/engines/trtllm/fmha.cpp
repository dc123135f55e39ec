#include "engines/trtllm/fmha.h"

#include "engines/trtllm/rules_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::array<std::int64_t, 44> kBatchCandidates = {
    1,  2,  3,  4,  5,  6,   7,   8,   9,   10,  11,   12,   13,   14,  15,
    16, 17, 18, 19, 20, 21,  22,  23,  24,  26,  28,   30,   32,   36,  40,
    48, 56, 64, 80, 96, 128, 256, 384, 512, 768, 1024, 1280, 1536, 2048};
constexpr std::array<std::int64_t, 7> kQueryCandidates = {1, 2, 4, 8, 32, 64, 128};

std::int64_t bucket(std::span<const std::int64_t> candidates, std::int64_t value) {
  if (value <= 0) return 0;
  const auto next = std::lower_bound(candidates.begin(), candidates.end(), value);
  if (next == candidates.end()) return candidates.back();
  const std::int64_t bound = *next;
  return value < bound && bound > 1 ? bound - 1 : bound;
}

// Layers whose fused context kernel is known to be missing from some builds; there the engine asks
// its build, because the unfused path would drop the cached prefix.
bool needs_context_kernel_check(const FmhaLayer& layer) {
  return layer.sm == 103 && layer.head_dim == 64;
}

EngineError runtime_error(std::string code, std::string message) {
  return EngineError{.type = "RuntimeError",
                     .code = std::move(code),
                     .message = std::move(message),
                     .near_matches = {}};
}

// State of one walk over the available libraries.
class Walk {
 public:
  Walk(const FmhaLayer& layer, const FmhaRequest& request, FmhaSelection& selection)
      : layer_(layer), request_(request), selection_(selection) {}

  // True where the library accepts; a refusal of the whole request is remembered. Sets the
  // selection's error where asking is already an error.
  bool accepts(const std::string& library, FmhaPhase phase, bool remember) {
    if (library == "fallback" && refuses_paged_context()) {
      selection_.error = runtime_error(
          "PAGED-CONTEXT-REFUSED",
          "reading cached pages in the context phase needs a fused kernel that this build lacks "
          "for head_dim 64 on SM103; the unfused path would drop the cached prefix");
      return false;
    }
    const std::string_view refusal = fmha_refusal(library, layer_, request_, phase);
    if (!refusal.empty() && remember) {
      selection_.rejected.push_back({library, std::string(refusal)});
    }
    return refusal.empty();
  }

  void dense() {
    const bool context = request_.num_contexts > 0;
    const bool generation = request_.num_generations > 0;
    if (!context && !generation) return;
    for (const std::string& library : selection_.available) {
      if (accepts(library, FmhaPhase::kWhole, /*remember=*/true)) selection_.impl = library;
      if (done()) return;
      if (!find_fmha_library(library)->phased) continue;
      if (context) remember_first(library, FmhaPhase::kContext, context_impl_);
      if (generation) remember_first(library, FmhaPhase::kGeneration, generation_impl_);
      if (selection_.error || combine(context, generation)) return;
    }
  }

  void latent() {
    const FmhaPhase phase =
        request_.input == FmhaInput::kContextOnly ? FmhaPhase::kContext : FmhaPhase::kGeneration;
    for (const std::string& library : selection_.available) {
      if (accepts(library, phase, /*remember=*/true)) selection_.impl = library;
      if (done()) return;
    }
  }

 private:
  [[nodiscard]] bool done() const { return selection_.error || !selection_.impl.empty(); }

  [[nodiscard]] bool refuses_paged_context() const {
    return request_.num_contexts > 0 && request_.paged_context &&
           !request_.fused_context_kernel_exists && needs_context_kernel_check(layer_);
  }

  void remember_first(const std::string& library, FmhaPhase phase, std::string& slot) {
    if (slot.empty() && accepts(library, phase, /*remember=*/false)) slot = library;
  }

  // True as soon as every present phase has a library. One library for both phases goes on: it
  // refused the request as a whole.
  bool combine(bool context, bool generation) {
    if (context && context_impl_.empty()) return false;
    if (generation && generation_impl_.empty()) return false;
    if (!context || !generation) {
      selection_.impl = context ? context_impl_ : generation_impl_;
      return true;
    }
    if (context_impl_ == generation_impl_) return false;
    selection_.context_impl = context_impl_;
    selection_.generation_impl = generation_impl_;
    selection_.impl = fmt::format("combined({}, {})", context_impl_, generation_impl_);
    return true;
  }

  const FmhaLayer& layer_;
  const FmhaRequest& request_;
  FmhaSelection& selection_;
  std::string context_impl_;
  std::string generation_impl_;
};

}  // namespace

FmhaSelection select_fmha(const FmhaLayer& layer, const FmhaRequest& request,
                          const std::optional<std::string>& libs) {
  FmhaSelection selection;
  FmhaList list = parse_fmha_libs(libs);
  if (list.error) {
    selection.error = std::move(list.error);
    return selection;
  }
  for (const std::string& library : list.names) {
    std::string reason = fmha_unavailable_reason(library, layer, request.custom_mask);
    if (reason.empty()) {
      selection.available.push_back(library);
    } else {
      selection.unavailable.push_back({library, std::move(reason)});
    }
  }
  if (layer.mla && request.input == FmhaInput::kMixed && !selection.available.empty()) {
    selection.error =
        runtime_error("MLA-MIXED-CALL", "an MLA call must be context-only or generation-only");
    return selection;
  }
  Walk walk(layer, request, selection);
  if (layer.mla) {
    walk.latent();
  } else {
    walk.dense();
  }
  if (selection.impl.empty() && !selection.error) {
    selection.error = runtime_error("NO-FMHA", "no enabled FMHA library serves this request");
  }
  return selection;
}

void append_steps(const FmhaSelection& selection, std::vector<Step>& steps) {
  for (const FmhaSelection::Unavailable& entry : selection.unavailable) {
    append_step({.rule = "TRT-FMHA-UNAVAILABLE",
                 .stage = Stage::kInnerKernel,
                 .verdict = Verdict::kRejected,
                 .candidate = entry.library,
                 .reason = entry.reason},
                steps);
  }
  for (const FmhaRefusal& refusal : selection.rejected) {
    const RuleInfo* rule = find_backend_rule("TRT-FMHA-" + refusal.rule);
    append_step({.rule = rule == nullptr ? std::string_view() : rule->id,
                 .stage = Stage::kInnerKernel,
                 .verdict = Verdict::kRejected,
                 .candidate = refusal.library,
                 .reason = rule == nullptr ? "" : std::string(rule->summary)},
                steps);
  }
  if (selection.error) {
    append_error_step(*selection.error, Stage::kInnerKernel, "", steps);
    return;
  }
  append_step({.rule = "TRT-FMHA-SELECTED",
               .stage = Stage::kInnerKernel,
               .verdict = Verdict::kSelected,
               .candidate = selection.impl,
               .reason = selection.rejected.empty()
                             ? "first library in the list"
                             : "first library that accepts the request or its phases"},
              steps);
}

FmhaCacheKey fmha_cache_key(const FmhaRequest& request, bool spec_decoding, bool block_sparse) {
  const bool generation = request.input != FmhaInput::kContextOnly && request.num_generations > 0;
  return FmhaCacheKey{
      .context_batch = fmha_batch_bucket(request.num_contexts),
      .generation_batch = fmha_batch_bucket(request.num_generations),
      .generation_seq_len_q = generation ? fmha_query_bucket(request.seq_len_q) : 0,
      .custom_mask = request.custom_mask,
      .spec_decoding = spec_decoding,
      .block_sparse = block_sparse,
      .output = request.output,
  };
}

std::int64_t fmha_batch_bucket(std::int64_t batch) { return bucket(kBatchCandidates, batch); }

std::int64_t fmha_query_bucket(std::int64_t seq_len_q) {
  return bucket(kQueryCandidates, seq_len_q);
}

}  // namespace kernelpath::engines::trtllm
