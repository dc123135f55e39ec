#include "config/quant_algorithms.h"

#include "base/text.h"

#include <fmt/format.h>

#include <array>

namespace kernelpath::config {
namespace {

Origin by_method(const Quantization& quant, std::string rule) {
  Origin origin = quant.method.origin;
  origin.kind = OriginKind::kDerived;
  origin.rule = std::move(rule);
  return origin;
}

// What a group of compressed-tensors says about weights or activations.
struct Scheme {
  std::int64_t bits = 0;
  std::int64_t group_size = 0;
  bool floating = false;
  std::string strategy;
};

Result<std::optional<Scheme>> read_scheme(const json::Value* object, const std::string& where,
                                          const FieldReader& reader) {
  if (object == nullptr || !object->is_object()) return std::optional<Scheme>{};
  Scheme scheme;
  if (const json::Value* bits = object->find_non_null("num_bits")) {
    KERNELPATH_TRY(value, to_integer(*bits, where + "/num_bits", {.min = 1, .max = 64}, reader));
    scheme.bits = value;
  }
  if (const json::Value* group = object->find_non_null("group_size")) {
    KERNELPATH_TRY(value,
                   to_integer(*group, where + "/group_size", {.min = -1, .max = 1 << 20}, reader));
    scheme.group_size = value;
  }
  const json::Value* type = object->find_non_null("type");
  scheme.floating = type != nullptr && type->is_string() && type->as_string() == "float";
  const json::Value* strategy = object->find_non_null("strategy");
  if (strategy != nullptr && strategy->is_string()) scheme.strategy = strategy->as_string();
  return std::optional<Scheme>{std::move(scheme)};
}

std::string float_algorithm(const Scheme& weights, bool quantised_inputs) {
  if (weights.bits == 4) {
    return weights.group_size == 32 ? (quantised_inputs ? "W4A8_MXFP4" : "W4A16_MXFP4")
                                    : (quantised_inputs ? "NVFP4" : "W4A16_NVFP4");
  }
  if (weights.strategy == "block") return "FP8_BLOCK_SCALES";
  if (weights.strategy == "channel") return "FP8_PER_CHANNEL_PER_TOKEN";
  return "FP8";
}

// The modules that a group is for, with the group's algorithm.
void add_targets(const json::Value& group, const std::string& algorithm,
                 std::vector<std::pair<std::string, std::string>>& out) {
  const json::Value* targets = group.find_non_null("targets");
  if (targets == nullptr || !targets->is_array()) return;
  out.reserve(out.size() + targets->items().size());
  for (const json::Value& target : targets->items()) {
    if (target.is_string()) out.emplace_back(target.as_string(), algorithm);
  }
}

// compressed-tensors: groups of one algorithm are one; different ones are MIXED_PRECISION, each for
// its own targets.
Result<void> by_groups(const json::Value& groups, const std::string& where,
                       const FieldReader& reader, Quantization& quant) {
  std::string algorithm;
  std::vector<std::pair<std::string, std::string>> targets;
  bool mixed = false;
  for (const json::Member& group : groups.members()) {
    const std::string place = fmt::format("{}/{}", where, group.key);
    KERNELPATH_TRY(weights,
                   read_scheme(group.value.find_non_null("weights"), place + "/weights", reader));
    KERNELPATH_TRY(inputs, read_scheme(group.value.find_non_null("input_activations"),
                                       place + "/input_activations", reader));
    if (!weights || weights->bits == 0) continue;
    const std::int64_t input_bits = inputs && inputs->bits > 0 ? inputs->bits : 16;
    const std::string own = weights->floating ? float_algorithm(*weights, inputs.has_value())
                                              : fmt::format("W{}A{}", weights->bits, input_bits);
    add_targets(group.value, own, targets);
    mixed = mixed || (!algorithm.empty() && own != algorithm);
    if (mixed) continue;
    algorithm = own;
    const Origin origin{OriginKind::kDerived, place + "/weights", "config_groups"};
    if (!quant.weight_bits) quant.weight_bits = {weights->bits, origin};
    if (!quant.group_size && weights->group_size > 0)
      quant.group_size = {weights->group_size, origin};
  }
  if (mixed) {
    quant.algo = {"MIXED_PRECISION", {OriginKind::kDerived, where, "groups differ"}};
    if (quant.layer_algos.empty()) quant.layer_algos = std::move(targets);
  } else if (!algorithm.empty() && !quant.algo) {
    quant.algo = {algorithm, {OriginKind::kDerived, where, "config_groups"}};
  }
  return {};
}

// Methods whose name tells the algorithm, with the bits of a weight.
struct MethodAlgorithm {
  std::string_view method;
  std::string_view algorithm;
  std::int64_t bits;
};
constexpr std::array<MethodAlgorithm, 9> kByMethod = {{
    {"fbgemm_fp8", "FP8_PER_CHANNEL_PER_TOKEN", 8},
    {"ptpc_fp8", "FP8_PER_CHANNEL_PER_TOKEN", 8},
    {"mxfp4", "W4A16_MXFP4", 4},
    {"mxfp8", "MXFP8", 8},
    {"nvfp4", "NVFP4", 4},
    {"modelopt_fp4", "NVFP4", 4},
    {"modelopt_fp8", "FP8", 8},
    {"modelopt_mixed", "MIXED_PRECISION", 0},
    {"tpu_int8", "W8A16", 8},
}};

// Methods that state bits beside their name: "W4A16_AWQ".
constexpr std::array<std::string_view, 7> kWeightOnly = {
    "awq", "gptq", "awq_marlin", "gptq_marlin", "hqq", "auto-round", "autoround"};

void by_bits(Quantization& quant) {
  std::string method = to_upper(*quant.method);
  if (method.ends_with("_MARLIN")) method.resize(method.size() - 7);
  if (quant.weight_bits) {
    quant.algo = {fmt::format("W{}A16_{}", *quant.weight_bits, method),
                  by_method(quant, "quant_method and bits")};
  }
}

void by_flags(const json::Value& object, Quantization& quant) {
  const auto is_set = [&](std::string_view name) {
    const json::Value* flag = object.find_non_null(name);
    return flag != nullptr && flag->is_bool() && flag->as_bool();
  };
  const bool four = is_set("load_in_4bit") || is_set("_load_in_4bit");
  const bool eight = is_set("load_in_8bit") || is_set("_load_in_8bit");
  if (!four && !eight) return;
  const json::Value* type = object.find_non_null("bnb_4bit_quant_type");
  const std::string kind =
      type != nullptr && type->is_string() ? to_upper(type->as_string()) : "FP4";
  quant.algo = {four ? "BITSANDBYTES_" + kind : "BITSANDBYTES_INT8",
                by_method(quant, "load_in_4bit, load_in_8bit")};
  if (!quant.weight_bits) quant.weight_bits = {four ? 4 : 8, quant.algo.origin};
}

// torchao: the name of its configuration class, or an older short name.
void by_torchao(const json::Value& object, Quantization& quant) {
  const json::Value* type = object.find_non_null("quant_type");
  while (type != nullptr && type->is_object()) {
    const json::Value* inner = type->find_non_null("default");
    const json::Value* name = type->find_non_null("_type");
    type = name != nullptr ? name : inner;
  }
  if (type == nullptr || !type->is_string()) return;
  quant.algo = {"TORCHAO_" + to_upper(shorten(type->as_string(), 64)),
                by_method(quant, "quant_type")};
}

void by_method_name(const json::Value& object, Quantization& quant) {
  const std::string& method = *quant.method;
  for (const MethodAlgorithm& row : kByMethod) {
    if (method != row.method) continue;
    quant.algo = {std::string(row.algorithm), by_method(quant, "quant_method")};
    if (!quant.weight_bits && row.bits > 0) quant.weight_bits = {row.bits, quant.algo.origin};
    return;
  }
  for (const std::string_view name : kWeightOnly) {
    if (method == name) return by_bits(quant);
  }
  if (method == "fp8" || method == "deepseek_v4_fp8") {
    const bool blocks = !quant.weight_block_size.empty();
    quant.algo = {blocks ? "FP8_BLOCK_SCALES" : "FP8",
                  by_method(quant, blocks ? "quant_method and weight_block_size" : "quant_method")};
    if (!quant.weight_bits) quant.weight_bits = {8, quant.algo.origin};
  }
  if (method == "bitsandbytes") by_flags(object, quant);
  if (method == "torchao") by_torchao(object, quant);
}

// Bits and group size that an algorithm's name implies.
void add_implied_sizes(Quantization& quant) {
  if (!quant.algo) return;
  const std::string& algo = *quant.algo;
  const Origin origin{OriginKind::kDerived, quant.algo.origin.where, algo};
  std::int64_t bits = 0;
  if (algo.starts_with("FP8") || algo == "INT8" || algo == "MXFP8") bits = 8;
  if (algo.starts_with("NVFP4") || algo.starts_with("FP4")) bits = 4;
  if (algo.size() > 1 && algo[0] == 'W' && algo[1] >= '2' && algo[1] <= '8') bits = algo[1] - '0';
  if (!quant.weight_bits && bits > 0) quant.weight_bits = {bits, origin};
  const bool sixteen = algo.find("NVFP4") != std::string::npos;
  const bool thirty_two = algo.find("MXFP") != std::string::npos;
  if (!quant.group_size && (sixteen || thirty_two)) quant.group_size = {sixteen ? 16 : 32, origin};
}

}  // namespace

Result<void> derive_algorithm(const json::Value& object, const std::string& pointer,
                              const FieldReader& reader, Quantization& quant) {
  if (!quant.algo && quant.method) by_method_name(object, quant);
  const json::Value* groups = object.find_non_null("config_groups");
  if (groups != nullptr) {
    const std::string where = pointer + "/config_groups";
    if (!groups->is_object()) return fail(type_error(*groups, where, "an object"));
    if (!quant.algo) KERNELPATH_CHECK_OK(by_groups(*groups, where, reader, quant));
  }
  add_implied_sizes(quant);
  return {};
}

}  // namespace kernelpath::config
