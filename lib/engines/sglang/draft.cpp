#include "engines/sglang/rule_ids.h"
#include "engines/sglang/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

// Source: model_executor/model_runner.py (ModelRunner with is_draft_worker), speculative/*.
namespace kernelpath::engines::sglang {
namespace {

constexpr std::array<std::string_view, 2> kWithoutModel = {"NGRAM", "UNO"};

bool has_draft(const Launch& launch) {
  const std::string algorithm = launch.text("speculative_algorithm");
  if (algorithm.empty() || algorithm == "NONE") return false;
  return std::find(kWithoutModel.begin(), kWithoutModel.end(), algorithm) == kWithoutModel.end();
}

// The launch as the draft's worker sees it.
Launch draft_launch(const Launch& target, ModelFacts facts) {
  Launch out = target;
  out.set_model(std::move(facts));
  const std::string own = target.text("speculative_draft_attention_backend");
  if (!own.empty()) {
    for (const std::string_view field :
         {"attention_backend", "prefill_attention_backend", "decode_attention_backend"}) {
      out.fill(kDraft, field, text_value(own));
    }
  }
  const std::string kv = target.text("speculative_draft_kv_cache_dtype");
  if (!kv.empty()) out.fill(kDraft, "kv_cache_dtype", text_value(kv));
  const std::string quantization = target.text("speculative_draft_model_quantization");
  out.fill(kDraft, "quantization", text_value(quantization));
  out.fill(kDraft, "speculative_algorithm", json::Value::null());
  return out;
}

ModelReading read_draft(const Launch& launch) {
  const ModelOptions options{.dtype = launch.text("dtype"),
                             .quantization = launch.text("speculative_draft_model_quantization"),
                             .draft = true,
                             .speculative_algorithm = launch.text("speculative_algorithm")};
  const ModelSource& source = launch.input().draft;
  return read_model(launch.profile(), launch.platform(), source.config, source.quant_config,
                    options);
}

std::string pair_of(const Launch& launch) {
  const std::string prefill = launch.prefill_backend();
  const std::string decode = launch.decode_backend();
  return prefill == decode ? prefill : fmt::format("{} / {}", prefill, decode);
}

}  // namespace

std::string draft_backend(const Launch& launch) {
  if (!has_draft(launch)) return {};
  const std::string own = launch.text("speculative_draft_attention_backend");
  return own.empty() ? pair_of(launch) : own;
}

DraftRun resolve_draft(const Run& run, std::vector<Step>& steps) {
  DraftRun out;
  if (run.request.draft == nullptr || !has_draft(run.launch)) return out;
  ModelReading reading = read_draft(run.launch);
  if (reading.refusal) {
    out.refusal = Refusal{.stage = "build",
                          .type = reading.refusal->type,
                          .rule = reading.refusal->rule,
                          .text = "of the draft: " + reading.refusal->text};
    return out;
  }
  Launch launch = draft_launch(run.launch, std::move(reading.facts));
  const KvStorage storage = kv_storage(launch, true);
  BuiltAttention built = build_attention(launch, storage.torch_dtype);
  if (launch.refused()) {
    out.refusal = *launch.refusal();
    out.refusal->text = "of the draft: " + out.refusal->text;
    return out;
  }
  append_step({.rule = kDraft,
               .stage = Stage::kConstruction,
               .verdict = Verdict::kSelected,
               .candidate = pair_of(launch),
               .reason = fmt::format("the draft {} builds {}", launch.model().architecture(),
                                     built.class_name)},
              steps);
  Request request = run.request;
  request.model = *run.request.draft;
  const Run draft{.request = request,
                  .launch = launch,
                  .arguments = run.arguments,
                  .storage = storage,
                  .built = std::move(built)};
  out.layers = layer_groups(draft);
  for (LayerGroup& group : out.layers) group.draft = true;
  return out;
}

}  // namespace kernelpath::engines::sglang
