#include "report/validate_build.h"

#include <algorithm>

namespace kernelpath::report {
namespace {

template <class T>
std::string pointer_of(const config::Field<T>& field) {
  const bool stated = field.origin.kind == config::OriginKind::kField ||
                      field.origin.kind == config::OriginKind::kSibling;
  return stated ? field.origin.where : std::string();
}

// The place in config.json of a fact that rules know as "model.…"; empty where no field states it.
std::string mla_pointer(const config::Mla& mla, std::string_view fact) {
  if (fact == "model.q_lora_rank") return pointer_of(mla.q_lora_rank);
  if (fact == "model.kv_lora_rank") return pointer_of(mla.kv_lora_rank);
  if (fact == "model.qk_nope_head_dim") return pointer_of(mla.qk_nope_head_dim);
  if (fact == "model.qk_rope_head_dim") return pointer_of(mla.qk_rope_head_dim);
  if (fact == "model.v_head_dim") return pointer_of(mla.v_head_dim);
  return {};
}

std::string model_pointer(const config::ModelConfig& model, std::string_view fact) {
  if (fact == "model.architecture") return model.has_architectures ? "/architectures" : "";
  if (fact == "model.head_dim") return pointer_of(model.head_dim);
  if (fact == "model.num_attention_heads") return pointer_of(model.num_attention_heads);
  if (fact == "model.num_key_value_heads") return pointer_of(model.num_key_value_heads);
  if (fact == "model.num_hidden_layers") return pointer_of(model.num_hidden_layers);
  if (fact == "model.attention_chunk_size") return pointer_of(model.attention_chunk_size);
  if (fact == "model.sliding_window") return pointer_of(model.sliding_window);
  if (fact == "model.max_position_embeddings") return pointer_of(model.max_position_embeddings);
  return model.mla ? mla_pointer(*model.mla, fact) : std::string();
}

FindingPlace config_place(const std::string& pointer, const PlaceSources& sources) {
  FindingPlace out{.at = "config:" + pointer, .shown = pointer, .file = sources.model->path};
  if (sources.model_document == nullptr) return out;
  if (const json::Value* const value =
          json::resolve_pointer(sources.model_document->root, pointer)) {
    out.position = sources.model_document->position(value->offset());
  }
  return out;
}

// "--max-model-len" → "max_model_len".
std::string option_field(std::string_view option) {
  std::string out(option.substr(2));
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

}  // namespace

FindingPlace place_of(const features::Finding& finding, const PlaceSources& sources) {
  if (finding.field.empty()) return {};
  if (sources.model != nullptr && finding.field.starts_with("model.")) {
    const std::string pointer = model_pointer(*sources.model, finding.field);
    if (!pointer.empty()) return config_place(pointer, sources);
  }
  FindingPlace out{.at = "option:" + finding.pointer};
  const features::ArgumentOrigin* const origin =
      sources.arguments != nullptr ? sources.arguments->origin(finding.field) : nullptr;
  if (origin != nullptr) {
    out.shown = origin->shown;
    out.file = origin->file;
    out.position = origin->position;
    return out;
  }
  out.shown = finding.option.empty() ? finding.field : finding.option;
  if (finding.option.starts_with("--")) out.at = "option:/" + option_field(finding.option);
  return out;
}

EngineFindings engine_findings(std::string_view engine, std::string_view version,
                               const features::CombinationAnswer& answer,
                               const PlaceSources& sources) {
  EngineFindings out{.engine = std::string(engine), .version = std::string(version)};
  for (const features::Finding& finding : answer.findings) {
    out.findings.push_back({.finding = finding, .place = place_of(finding, sources)});
  }
  return out;
}

}  // namespace kernelpath::report
