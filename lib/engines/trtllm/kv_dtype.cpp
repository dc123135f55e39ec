#include "engines/trtllm/kv_dtype.h"

#include "base/text.h"
#include "engines/trtllm/rules_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::trtllm {
namespace {

// The names that the field check lets pass; the last two are short forms of this program.
constexpr std::array<std::string_view, 13> kNames = {
    "auto",    "fp8",  "fp8_ds_mla", "nvfp4",         "bfloat16", "float16", "half",
    "float32", "int8", "int32",      "float8_e4m3fn", "bf16",     "fp16"};

void take_from_checkpoint(const config::ModelConfig& model, DataType model_dtype,
                          KvDtypeDecision& out) {
  // hf_quant_config.json is read before config.json's own block.
  const bool sibling = model.sibling_quantization && model.sibling_quantization->kv_cache_dtype;
  const config::StringField& stated =
      sibling ? model.sibling_quantization->kv_cache_dtype : model.quantization.kv_cache_dtype;
  const std::optional<DataType> type = stated ? parse_data_type(to_lower(*stated)) : std::nullopt;
  if (type) {
    out.type = *type;
    out.rule = "TRT-KV-DTYPE-CHECKPOINT";
    out.reason = fmt::format("the checkpoint states {} ({})", *stated, stated.origin.where);
    return;
  }
  out.type = model_dtype;
  out.rule = "TRT-KV-DTYPE-MODEL";
  out.reason = fmt::format("auto, and the checkpoint states none: the model's {}",
                           data_type_name(model_dtype));
}

}  // namespace

std::span<const std::string_view> kv_dtype_names() { return kNames; }

KvDtypeDecision kv_cache_dtype(const config::ModelConfig& model, const Arguments& arguments,
                               DataType model_dtype) {
  KvDtypeDecision out;
  // The engine lower-cases the field before it checks it.
  out.asked = to_lower(arguments.text("kv_cache_config.dtype").value_or("auto"));
  if (out.asked == "auto") {
    take_from_checkpoint(model, model_dtype, out);
    return out;
  }
  if (std::find(kNames.begin(), kNames.end(), out.asked) == kNames.end()) {
    out.rule = "TRT-KV-DTYPE";
    out.reason =
        fmt::format("{} is none of auto, fp8, fp8_ds_mla, nvfp4 and torch's names", out.asked);
    out.error = EngineError{.type = "ValueError",
                            .code = "KV-DTYPE",
                            .message = out.reason,
                            .near_matches = near_matches(out.asked, kNames)};
    return out;
  }
  if (out.asked == "nvfp4" || out.asked == "fp8" || out.asked == "fp8_ds_mla") {
    out.type = out.asked == "nvfp4" ? DataType::kNvfp4 : DataType::kFp8;
    out.rule = "TRT-KV-DTYPE-SYNC";
    out.reason =
        fmt::format("{} is asked ({})", out.asked, arguments.set_by("kv_cache_config.dtype"));
    return out;
  }
  take_from_checkpoint(model, model_dtype, out);
  out.reason = fmt::format("{} is asked but not copied into the quantisation config: {}", out.asked,
                           out.reason);
  out.rule = "TRT-KV-DTYPE-UNSYNCED";
  return out;
}

void append_steps(const KvDtypeDecision& decision, std::vector<Step>& steps) {
  const bool warns = decision.rule == "TRT-KV-DTYPE-UNSYNCED";
  append_engine_step(
      {.rule = decision.rule,
       .stage = Stage::kFinalValue,
       .verdict = decision.error ? Verdict::kRejected : Verdict::kApplied,
       .severity = decision.error ? Severity::kError
                   : warns        ? Severity::kWarn
                                  : Severity::kInfo,
       .candidate = decision.error ? decision.asked : std::string(data_type_name(decision.type)),
       .reason = decision.reason},
      steps);
}

}  // namespace kernelpath::engines::trtllm
