// What the code that all classes share does beside reading. Source: llama.cpp 0c1e5709,
// src/llama-model.cpp, llama_model_base::load_hparams.
#include "engines/llamacpp/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace kernelpath::engines::llamacpp {
namespace {

using Step = void (*)(Reader&);

void assign_recurrent(Reader& reader) {
  std::ranges::fill(reader.hparams.is_recr_impl, reader.architecture.recurrent ? 1 : 0);
}

void default_kv_heads(Reader& reader) { reader.hparams.n_head_kv_arr = reader.hparams.n_head_arr; }

std::int64_t width_of_head(const Hparams& hparams) {
  return hparams.n_head() > 0 ? hparams.n_embd / hparams.n_head() : 0;
}

void default_key_length(Reader& reader) {
  reader.hparams.n_embd_head_k_full = width_of_head(reader.hparams);
}

void default_value_length(Reader& reader) {
  reader.hparams.n_embd_head_v_full = width_of_head(reader.hparams);
}

void default_rotated(Reader& reader) {
  reader.hparams.n_rot_full = reader.hparams.n_head() > 0 ? reader.hparams.n_embd_head_k_full : 0;
}

void default_window_lengths(Reader& reader) {
  Hparams& hparams = reader.hparams;
  hparams.n_embd_head_k_swa = hparams.n_embd_head_k_full;
  hparams.n_embd_head_v_swa = hparams.n_embd_head_v_full;
}

void default_window_rotated(Reader& reader) {
  reader.hparams.n_rot_swa = reader.hparams.n_rot_full;
}

void check_layers(Reader& reader) {
  const std::int64_t layers = reader.hparams.n_layer_all;
  if (layers > 0 && layers <= kMaxLayers) return;
  reader.require(false, fmt::format("hparams.n_layer_all > 0 && hparams.n_layer_all <= {} [{}]",
                                    kMaxLayers, layers));
}

void check_prediction_layers(Reader& reader) {
  reader.require(reader.hparams.n_layer_nextn <= reader.hparams.n_layer_all,
                 "hparams.n_layer_nextn <= hparams.n_layer_all");
}

std::int64_t most_used_experts(const Hparams& hparams) {
  const auto end = hparams.n_expert_used_arr.begin() + hparams.n_layer_all;
  return *std::max_element(hparams.n_expert_used_arr.begin(), end);
}

void check_expert_groups(Reader& reader) {
  const Hparams& hparams = reader.hparams;
  reader.require(hparams.n_expert_groups < hparams.n_expert,
                 "hparams.n_expert_groups < hparams.n_expert");
  if (reader.failed() || hparams.n_expert_groups <= 1) return;
  reader.require(hparams.n_expert % hparams.n_expert_groups == 0,
                 "hparams.n_expert % hparams.n_expert_groups == 0");
  reader.require(hparams.n_group_used > 0, "hparams.n_group_used > 0");
  reader.require(hparams.n_group_used < hparams.n_expert_groups,
                 "hparams.n_group_used < hparams.n_expert_groups");
}

// Done before the feed-forward lengths are read, where the engine has all numbers of experts.
void check_experts(Reader& reader) {
  Hparams& hparams = reader.hparams;
  const std::string_view constant = reader.architecture.constant;
  const bool hunyuan = constant == "LLM_ARCH_HUNYUAN_VL" || constant == "LLM_ARCH_HUNYUAN_DENSE";
  if (hunyuan && hparams.n_expert <= 1) {
    hparams.n_expert = 0;
    std::ranges::fill(hparams.n_expert_used_arr, 0);
  }
  const std::int64_t used = most_used_experts(hparams);
  reader.require(hparams.n_expert <= kMaxExperts, "hparams.n_expert <= LLAMA_MAX_EXPERTS");
  reader.require(used <= hparams.n_expert, "n_expert_used_max <= hparams.n_expert");
  if (hparams.n_expert > 0) {
    reader.require(used > 0, "n_expert_used_max > 0");
    check_expert_groups(reader);
  } else {
    reader.require(hparams.n_expert_groups == 0, "hparams.n_expert_groups == 0");
  }
}

void before_feed_forward(Reader& reader) {
  check_experts(reader);
  assign_recurrent(reader);
}

void check_rotated(Reader& reader) {
  constexpr auto kWholeHead = std::to_array<std::string_view>(
      {"LLM_ARCH_LLAMA", "LLM_ARCH_DECI", "LLM_ARCH_FALCON", "LLM_ARCH_LLAMA_EMBED"});
  const Hparams& hparams = reader.hparams;
  const bool asked =
      std::ranges::find(kWholeHead, std::string_view(reader.architecture.constant)) !=
      kWholeHead.end();
  if (!asked || hparams.n_head() == 0 || hparams.n_rot_full == hparams.n_embd_head_k_full) return;
  reader.fail_with(fmt::format("invalid n_rot: {}, expected {}", hparams.n_rot_full,
                               hparams.n_embd_head_k_full));
}

void default_yarn_context(Reader& reader) {
  reader.hparams.n_ctx_orig_yarn = reader.hparams.n_ctx_train;
}

struct BaseStep {
  std::string_view into;
  Step before;
  Step after;
};

constexpr auto kSteps = std::to_array<BaseStep>({
    {"n_layer_all", nullptr, check_layers},
    {"n_layer_nextn", nullptr, check_prediction_layers},
    {"n_ff_arr", before_feed_forward, nullptr},
    {"n_head_kv_arr", default_kv_heads, nullptr},
    {"n_ctx_orig_yarn", default_yarn_context, nullptr},
    {"n_embd_head_k_full", default_key_length, nullptr},
    {"n_embd_head_v_full", default_value_length, nullptr},
    {"n_rot_full", default_rotated, check_rotated},
    {"n_embd_head_k_swa", default_window_lengths, nullptr},
    {"n_rot_swa", default_window_rotated, nullptr},
});

const BaseStep* find_step(std::string_view into) {
  const auto* const found = std::ranges::find(kSteps, into, &BaseStep::into);
  return found == kSteps.end() ? nullptr : found;
}

}  // namespace

void before_base_row(Reader& reader, const ReadRow& row) {
  const BaseStep* step = find_step(row.into);
  if (step != nullptr && step->before != nullptr) step->before(reader);
}

void after_base_row(Reader& reader, const ReadRow& row) {
  const BaseStep* step = find_step(row.into);
  if (step != nullptr && step->after != nullptr) step->after(reader);
}

}  // namespace kernelpath::engines::llamacpp
