#include "engines/sglang/model_class.h"

#include "base/text.h"
#include "config/family.h"
#include "engines/sglang/hf_config.h"
#include "engines/sglang/rule_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::sglang {
namespace {

constexpr std::string_view kTransformers = "Transformers";

struct ExpertField {
  std::string_view name;
  double above;
};
constexpr std::array kExpertFields = {
    ExpertField{"num_local_experts", 1}, ExpertField{"num_experts", 1},
    ExpertField{"num_experts_per_tok", 1}, ExpertField{"moe_intermediate_size", 0},
    ExpertField{"n_routed_experts", 1}};

bool value_above(const json::Value& value, double threshold) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_number()) return value.as_double() > threshold;
  return python_true(&value);
}

bool is_moe(const Names& architectures, const HfConfig& config) {
  const bool named = std::any_of(architectures.begin(), architectures.end(), [](const auto& name) {
    const std::string lower = to_lower(name);
    return lower.find("moe") != std::string::npos || lower.find("mixtral") != std::string::npos;
  });
  if (named) return true;
  return std::any_of(kExpertFields.begin(), kExpertFields.end(), [&](const ExpertField& field) {
    const json::Value* value = config.text(field.name);
    return value != nullptr && value_above(*value, field.above);
  });
}

bool is_classifier(const Names& architectures) {
  return std::any_of(architectures.begin(), architectures.end(), [](const auto& name) {
    const std::string lower = to_lower(name);
    return lower.find("sequenceclassification") != std::string::npos ||
           lower.find("rewardmodel") != std::string::npos;
  });
}

std::string transformers_name(const Launch& launch, const Names& architectures,
                              const HfConfig& config) {
  std::string name(kTransformers);
  if (launch.model().is_multimodal || config.nested()) name += "MultiModal";
  if (is_moe(architectures, config)) name += "MoE";
  if (launch.model().is_generation) return name + "ForCausalLM";
  return name + (is_classifier(architectures) ? "ForSequenceClassification" : "EmbeddingModel");
}

Event message(std::string_view rule, Event::Kind kind, std::string text) {
  return {.rule = std::string(rule), .kind = kind, .text = std::move(text), .changes = {}};
}

// True where transformers has the class, or the checkpoint brings an AutoModel of its own.
bool known_elsewhere(const std::string& architecture, const HfConfig& config) {
  if (!config::model_types_of_class(architecture).empty()) return true;
  const json::Value* map = config.stated("auto_map");
  return map != nullptr && map->find("AutoModel") != nullptr;
}

void check_fallback(const Launch& launch, const std::string& architecture, const HfConfig& config,
                    ModelClass& out) {
  const std::string wanted = launch.text("model_impl");
  if (known_elsewhere(architecture, config)) {
    if (wanted != "auto") return;
    out.events.push_back(
        message(kClassTransformers, Event::Kind::kWarning,
                architecture + " has no SGLang implementation, falling back to Transformers "
                               "implementation. Some features may not be supported and performance "
                               "may not be optimal."));
    return;
  }
  if (wanted == "transformers") {
    out.events.push_back(message(
        kClassNoGate, Event::Kind::kWarning,
        fmt::format("Cannot resolve model class for '{}' and no auto_map.AutoModel is present. "
                    "Skipping compatibility gate because --model-impl=transformers is explicitly "
                    "requested.",
                    architecture)));
    return;
  }
  out.refusal = ModelRefusal{
      .type = "ValueError",
      .rule = std::string(kClassUnknown),
      .text = fmt::format("Cannot find model module. '{}' is not a registered model in the "
                          "Transformers library (only relevant if the model is meant to be in "
                          "Transformers) and 'AutoModel' is not present in the model config's "
                          "'auto_map' (relevant if the model is custom).",
                          architecture)};
}

Event rewrite(std::string_view rule, const std::string& from, std::string_view to) {
  return message(rule, Event::Kind::kInfo, fmt::format("{} is served as {}", from, to));
}

// Names that the engine looks up in place of the checkpoint's.
Names rewritten(const Launch& launch, ModelClass& out) {
  constexpr std::array<std::string_view, 5> kMixtral = {"fp8", "compressed-tensors", "gptq_marlin",
                                                        "awq_marlin", "quark_int4fp8_moe"};
  const ModelFacts& model = launch.model();
  if (model.is_embedding_gemma) {
    out.events.push_back(rewrite(kClassEmbedding, model.architecture(), "EmbeddingGemmaModel"));
    return {"EmbeddingGemmaModel"};
  }
  const std::string& quantization = model.quantization;
  const bool plain = quantization.empty() ||
                     std::find(kMixtral.begin(), kMixtral.end(), quantization) != kMixtral.end();
  if (!plain && contains(model.architectures, "MixtralForCausalLM")) {
    out.events.push_back(rewrite(kClassMixtral, model.architecture(), "QuantMixtralForCausalLM"));
    return {"QuantMixtralForCausalLM"};
  }
  return model.architectures;
}

std::string implementation_of(const std::string& architecture) {
  if (architecture.starts_with(kTransformers)) return "transformers";
  return architecture.starts_with("MindSpore") ? "mindspore" : "sglang";
}

}  // namespace

ModelClass resolve_model_class(const Launch& launch) {
  ModelClass out;
  const HfConfig config(launch.profile(), launch.input().model.config);
  Names names = rewritten(launch, out);
  const std::string wanted = launch.text("model_impl");
  const auto registered = [&](const std::string& name) {
    return launch.profile().find_architecture(name) != nullptr;
  };
  if (wanted == "mindspore") {
    names = {"MindSporeForCausalLM"};
  } else if (wanted == "transformers" || std::none_of(names.begin(), names.end(), registered)) {
    for (const std::string& name : names) {
      if (name.starts_with(kTransformers)) continue;
      check_fallback(launch, name, config, out);
      if (out.refusal) return out;
    }
    names = {transformers_name(launch, names, config)};
  }
  const auto found = std::find_if(names.begin(), names.end(), registered);
  out.architecture = found == names.end() ? "TransformersForCausalLM" : *found;
  const ArchitectureRow* row = launch.profile().find_architecture(out.architecture);
  out.module = row == nullptr ? std::string() : row->module;
  out.implementation = implementation_of(out.architecture);
  return out;
}

}  // namespace kernelpath::engines::sglang
