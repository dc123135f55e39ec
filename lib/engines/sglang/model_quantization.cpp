#include "base/text.h"
#include "engines/sglang/launch.h"
#include "engines/sglang/model_reader.h"
#include "engines/sglang/rule_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// Source: configs/model_config.py (_parse_modelopt_quant_config, _verify_quantization) and
// override_quantization_method() of layers/quantization/*.
namespace kernelpath::engines::sglang {
namespace {

const json::Value* object_or_null(const json::Value* value) {
  return value != nullptr && value->is_object() ? value : nullptr;
}

// The part of a ModelOpt description that holds the algorithm; it may be nested twice.
const json::Value* unwrap_modelopt(const json::Value* config) {
  if (config == nullptr) return nullptr;
  const json::Value* inner = object_or_null(config->find("quantization"));
  if (inner == nullptr) return config->find("quantization") == nullptr ? config : nullptr;
  const json::Value* nested = object_or_null(inner->find("quantization"));
  return nested == nullptr ? inner : nested;
}

bool any_layer_is(const json::Value& config, std::initializer_list<std::string_view> algorithms,
                  std::string_view part) {
  const json::Value* layers = object_or_null(config.find("quantized_layers"));
  if (layers == nullptr) return false;
  return std::any_of(layers->members().begin(), layers->members().end(), [&](const auto& row) {
    if (row.key.find(part) == std::string::npos) return false;
    const std::string algorithm = to_upper(string_of(row.value.find("quant_algo")));
    return std::find(algorithms.begin(), algorithms.end(), algorithm) != algorithms.end();
  });
}

// The method of a ModelOpt description; empty where its algorithm names none.
std::string modelopt_method(const json::Value& config) {
  const std::string algorithm = string_of(config.find("quant_algo"));
  if (algorithm == "MIXED_PRECISION") {
    return any_layer_is(config, {"NVFP4", "W4A16_NVFP4"}, "") ? "modelopt_mixed" : "w4afp8";
  }
  if (algorithm.find("FP4") != std::string::npos) return "modelopt_fp4";
  if (algorithm == "FP8") return "modelopt_fp8";
  if (algorithm == "MXFP8") return "mxfp8";
  return {};
}

// The description of the checkpoint's quantisation, with its method after the engine's reading.
struct Stated {
  const json::Value* config = nullptr;
  std::string method = {};  // empty where the description does not name one
  std::string algorithm = {};
  bool in_config = false;  // config.json's quantization_config
};

Stated find_stated(const ModelReader& reader) {
  const json::Value* own = object_or_null(reader.config.top("quantization_config"));
  if (own != nullptr) {
    Stated stated{.config = own,
                  .method = string_of(own->find("quant_method")),
                  .algorithm = string_of(own->find("quant_algo")),
                  .in_config = true};
    if (stated.method.empty() || stated.method == "modelopt") {
      const json::Value* inner = unwrap_modelopt(own);
      const std::string parsed = inner == nullptr ? "" : modelopt_method(*inner);
      if (!parsed.empty()) stated.method = parsed;
    }
    return stated;
  }
  const json::Value* compression = object_or_null(reader.config.top("compression_config"));
  if (compression != nullptr) {
    return {.config = compression, .method = string_of(compression->find("quant_method"))};
  }
  const json::Value* beside = unwrap_modelopt(object_or_null(&reader.quant_config));
  if (beside == nullptr) return {};
  const std::string parsed = modelopt_method(*beside);
  if (parsed.empty()) return {};
  return {.config = beside, .method = parsed, .algorithm = string_of(beside->find("quant_algo"))};
}

// --- conversions to another kernel ---------------------------------------------------------------

constexpr int kMarlinCapability = 80;

bool marlin_group(std::optional<std::int64_t> group_size) {
  constexpr std::array<std::int64_t, 4> kSizes = {-1, 32, 64, 128};
  return group_size && std::find(kSizes.begin(), kSizes.end(), *group_size) != kSizes.end();
}

bool awq_fits_marlin(const ModelReader& reader, const json::Value& config) {
  const auto bits = integer_of(config.find("bits"));
  const json::Value* zero_point = config.find_non_null("zero_point");
  if (!reader.platform.cuda() || !bits || zero_point == nullptr) return false;
  if (reader.platform.device_sm() < kMarlinCapability) return false;
  // With zero points Marlin has unsigned 4 bits only, and without them no unsigned type at all.
  return *bits == 4 && python_true(zero_point) &&
         marlin_group(integer_of(config.find("group_size")));
}

bool gptq_fits_marlin(const ModelReader& reader, const json::Value& config) {
  const auto bits = integer_of(config.find("bits"));
  const json::Value* symmetric = config.find_non_null("sym");
  if (!bits || symmetric == nullptr || config.find_non_null("desc_act") == nullptr) return false;
  if (reader.platform.device_sm() < kMarlinCapability) return false;
  return (*bits == 4 || *bits == 8) && python_true(symmetric) &&
         marlin_group(integer_of(config.find("group_size")));
}

bool fits_moe_wna16(const ModelReader& reader, const json::Value& config, std::string_view method) {
  constexpr int kAwqCapability = 75;
  const auto bits = integer_of(config.find("bits"));
  const bool gptq = method == "gptq" && !python_true(config.find("desc_act")) && bits &&
                    (*bits == 4 || *bits == 8);
  const bool awq =
      method == "awq" && bits && *bits == 4 && reader.platform.device_sm() >= kAwqCapability;
  return gptq || awq;
}

std::string canonical_modelopt(std::string_view algorithm) {
  if (algorithm == "MIXED_PRECISION") return "modelopt_mixed";
  if (algorithm.find("FP4") != std::string_view::npos) return "modelopt_fp4";
  if (algorithm.find("FP8") != std::string_view::npos) return "modelopt_fp8";
  return {};
}

std::string modelopt_override(const ModelReader& reader, const Stated& stated,
                              const std::string& asked) {
  if (asked == "nvfp4_online" || contains(reader.profile.quantization.requantization, asked)) {
    return {};
  }
  if (asked == "modelopt") {
    std::string canonical = canonical_modelopt(to_upper(stated.algorithm));
    if (!canonical.empty()) return canonical;
  }
  const bool known = stated.method == "modelopt_fp8" || stated.method == "modelopt_fp4";
  return known ? stated.method : std::string();
}

void say_convertible(ModelReader& reader, std::string_view kernel, bool forced) {
  const std::string_view plain = kernel == "awq_marlin" ? "awq" : "gptq";
  reader.out.messages.push_back(
      {.warning = false,
       .rule = std::string(kModelQuantConvertible),
       .text = forced ? fmt::format("Detected that the model can run with {0}, however you "
                                    "specified quantization={1} explicitly, so forcing {1}. Use "
                                    "quantization={0} for faster inference",
                                    kernel, plain)
                      : fmt::format("The model is convertible to {0} during runtime. Using {0} "
                                    "kernel.",
                                    kernel)});
}

// GPTQ or AWQ weights that Marlin takes; an empty text where it stays as it is.
std::string marlin_override(ModelReader& reader, std::string_view method, bool fits,
                            const std::string& asked) {
  std::string kernel = std::string(method) + "_marlin";
  if (fits && (asked.empty() || asked == "marlin" || asked == kernel)) {
    say_convertible(reader, kernel, false);
    return kernel;
  }
  if (fits && asked == method) say_convertible(reader, kernel, true);
  return {};
}

// What the quantisation methods turn the asked one into, in the order of the engine's registry.
std::string method_override(ModelReader& reader, const Stated& stated, const std::string& asked) {
  const std::string method = to_lower(stated.method);
  std::string modelopt = modelopt_override(reader, stated, asked);
  if (!modelopt.empty()) return modelopt;
  if (stated.method == "modelopt_mixed") return "modelopt_mixed";
  std::string awq = marlin_override(
      reader, "awq", method == "awq" && awq_fits_marlin(reader, *stated.config), asked);
  if (!awq.empty()) return awq;
  const bool marlin_format = string_of(stated.config->find("checkpoint_format")) == "marlin" ||
                             python_true(stated.config->find("is_marlin_format"));
  std::string gptq = marlin_override(
      reader, "gptq",
      method == "gptq" && !marlin_format && gptq_fits_marlin(reader, *stated.config), asked);
  if (!gptq.empty()) return gptq;
  if (asked == "moe_wna16" && fits_moe_wna16(reader, *stated.config, method)) return "moe_wna16";
  if (reader.platform.hip() && method == "modelopt") return "petit_nvfp4";
  return asked == "humming" && method != "mxfp4" ? "humming" : "";
}

// --- the verdict ---------------------------------------------------------------------------------

bool compatible(const ModelReader& reader, const std::string& asked, const std::string& method) {
  const auto found = reader.profile.quantization.compatible.find(asked);
  return found != reader.profile.quantization.compatible.end() && contains(found->second, method);
}

// Settles what the user asked for with what the checkpoint states.
void settle(ModelReader& reader, const std::string& method) {
  std::string& asked = reader.out.facts.quantization;
  if (asked.empty()) {
    asked = method;
    return;
  }
  if (asked == method) return;
  const bool online_draft = reader.options.draft && asked == "nvfp4_online" &&
                            (method == "modelopt_fp4" || method == "modelopt_mixed");
  if (online_draft || compatible(reader, asked, method)) {
    reader.out.messages.push_back(
        {.warning = false,
         .rule = std::string(kModelQuantCompatible),
         .text = fmt::format("Using CLI-specified quantization ({}) which is compatible with HF "
                             "config quant_method ({}).",
                             asked, method)});
    return;
  }
  if (reader.options.draft) {
    asked = method;
    return;
  }
  if (contains(reader.profile.quantization.requantization, asked)) return;
  reader.refuse("ValueError", std::string(kModelQuantMismatch),
                fmt::format("Quantization method specified in the model config ({}) does not match "
                            "the quantization method specified in the `quantization` argument "
                            "({}).",
                            method, asked));
}

Names known_methods(const ModelReader& reader) {
  Names methods = reader.profile.quantization.methods;
  const bool mxfp4 = reader.platform.cuda() || reader.platform.cpu() || reader.platform.gfx95();
  if (mxfp4) methods.emplace_back("mxfp4");
  if (reader.platform.cpu()) methods.emplace_back("gptq");
  return methods;
}

void check_method(ModelReader& reader) {
  const std::string& method = reader.out.facts.quantization;
  if (method.empty()) return;
  const Names known = known_methods(reader);
  if (!contains(known, method)) {
    reader.refuse("ValueError", std::string(kModelQuantUnknown),
                  fmt::format("Unknown quantization method: {}. Must be one of {}.", method,
                              python_list(known)));
    return;
  }
  if (reader.platform.hip() && !contains(reader.profile.quantization.rocm, method)) {
    reader.refuse("ValueError", std::string(kModelQuantRocm),
                  fmt::format("{} quantization is currently not supported in ROCm.", method));
    return;
  }
  const bool native = (method == "mxfp4" || method == "mxfp8") && reader.platform.sm100();
  if (contains(reader.profile.quantization.optimized, method) || native) return;
  reader.out.messages.push_back(
      {.warning = true,
       .rule = std::string(kModelQuantSlow),
       .text = fmt::format("{} quantization is not fully optimized yet. The speed can be slower "
                           "than non-quantized models.",
                           method)});
}

bool group_formats_have(const json::Value& config, std::string_view part) {
  const json::Value* groups = object_or_null(config.find("config_groups"));
  if (groups == nullptr) return false;
  return std::any_of(groups->members().begin(), groups->members().end(), [&](const auto& row) {
    return string_of(row.value.find("format")).find(part) != std::string::npos;
  });
}

bool is_int4_group32(const json::Value& config) {
  const json::Value* groups = object_or_null(config.find("config_groups"));
  const json::Value* first = groups == nullptr ? nullptr : groups->find("group_0");
  const json::Value* weights = first == nullptr ? nullptr : first->find("weights");
  return weights != nullptr && integer_of(weights->find("num_bits")) == 4 &&
         integer_of(weights->find("group_size")) == 32 &&
         string_of(weights->find("strategy")) == "group" &&
         string_of(weights->find("type")) == "int";
}

bool fp8_cache_scheme(const json::Value& config) {
  const json::Value* scheme = object_or_null(config.find("kv_cache_scheme"));
  return scheme != nullptr && string_of(scheme->find("type")) == "float" &&
         integer_of(scheme->find("num_bits")) == 8;
}

void read_expert_formats(ModelReader& reader, const json::Value& config) {
  ModelFacts& facts = reader.out.facts;
  const bool mimo = facts.is("MiMoV2ForCausalLM") || facts.is("MiMoV2FlashForCausalLM");
  facts.is_fp4_experts = string_of(config.find("routed_experts_quant_method")) == "mxfp4" ||
                         (mimo && to_lower(string_of(config.find("store_dtype"))) == "mxfp4");
  const std::string moe_algorithm = to_upper(string_of(config.find("moe_quant_algo")));
  facts.has_nvfp4_moe = to_upper(facts.quant_algo) == "MIXED_PRECISION" &&
                        moe_algorithm == "NVFP4" && config.find_non_null("group_size") != nullptr;
  facts.minimax_nvfp4 = moe_algorithm == "NVFP4" &&
                        string_of(config.find("moe_quant_format")) == "nvfp4-pack-quantized";
  facts.is_int4_group32 = facts.quant_method == "compressed-tensors" && is_int4_group32(config);
  facts.w4a16_experts = any_layer_is(config, {"W4A16_NVFP4"}, ".experts");
  facts.mxfp4_pack_quantized = group_formats_have(config, "mxfp4");
  facts.nvfp4_pack_quantized = group_formats_have(config, "nvfp4") ||
                               string_of(config.find("format")).find("nvfp4") != std::string::npos;
}

}  // namespace

void read_quantization_fields(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  const Stated stated = find_stated(reader);
  if (stated.in_config) {
    facts.quant_method = stated.method;
    facts.quant_algo = stated.algorithm;
    read_expert_formats(reader, *stated.config);
  }
  if (stated.config != nullptr) {
    facts.kv_cache_quant_algo = string_of(stated.config->find("kv_cache_quant_algo"));
    // The mxfp8 class reads no scheme.
    const bool reads_scheme = stated.method != "mxfp8";
    if (facts.kv_cache_quant_algo.empty() && reads_scheme && fp8_cache_scheme(*stated.config)) {
      facts.kv_cache_quant_algo = "FP8";
    }
  }
  // Without a word from the checkpoint, DeepSeek-V4's routed experts count as FP4.
  const bool v4 = facts.architecture().starts_with("DeepseekV4ForCausalLM");
  const bool stated_experts =
      stated.in_config && stated.config->find_non_null("routed_experts_quant_method") != nullptr;
  if (v4 && !stated_experts) facts.is_fp4_experts = true;
}

void read_quantization(ModelReader& reader) {
  ModelFacts& facts = reader.out.facts;
  facts.quantization = to_lower(reader.options.quantization);
  const Stated stated = find_stated(reader);
  if (stated.config != nullptr) {
    const std::string asked = facts.quantization;
    std::string method = to_lower(stated.method);
    if (stated.method.empty() && stated.config->find("quant_method") == nullptr) method = asked;
    if (!contains(reader.profile.quantization.requantization, asked)) {
      std::string changed = method_override(reader, stated, asked);
      if (!changed.empty()) {
        method = changed;
        facts.quantization = std::move(changed);
      }
    }
    settle(reader, method);
  }
  if (!reader.out.refusal) check_method(reader);
}

}  // namespace kernelpath::engines::sglang
