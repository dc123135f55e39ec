// Forms of quantization_config, and the files that stand beside config.json.

#include "config/quantization.h"

#include "base/text.h"
#include "config/derive.h"
#include "config/quant_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::config {
namespace {

const json::Value* member(const QuantSource& source, std::string_view name) {
  return source.object->find_non_null(name);
}

Origin origin_of(const QuantSource& source, std::string_view name) {
  return {source.kind, fmt::format("{}/{}", source.pointer, name), {}};
}

Result<StringField> name_of(const QuantSource& source, std::string_view name) {
  const json::Value* value = member(source, name);
  if (value == nullptr) return StringField{};
  Origin origin = origin_of(source, name);
  KERNELPATH_TRY(text, to_name(*value, origin.where));
  return StringField{text, std::move(origin)};
}

Result<IntField> number_of(const QuantSource& source, const FieldReader& reader, Names names) {
  for (const std::string_view name : names) {
    const json::Value* value = member(source, name);
    if (value == nullptr) continue;
    Origin origin = origin_of(source, name);
    // -1 is GPTQ's and AWQ's "one group for the whole row".
    KERNELPATH_TRY(number, to_integer(*value, origin.where, {.min = -1, .max = 1 << 20}, reader));
    return IntField{number, std::move(origin)};
  }
  return IntField{};
}

Result<void> read_block_size(const QuantSource& source, const FieldReader& reader,
                             Quantization& quant) {
  const json::Value* value = member(source, "weight_block_size");
  if (value == nullptr) return {};
  const std::string where = source.pointer + "/weight_block_size";
  if (!value->is_array()) return fail(type_error(*value, where, "a list of two integers"));
  if (value->items().size() != 2) {
    return fail(value_error(*value, where, "two sizes are needed, rows and columns of a block"));
  }
  for (const json::Value& item : value->items()) {
    const std::string place = fmt::format("{}/{}", where, quant.weight_block_size.size());
    KERNELPATH_TRY(size, to_integer(item, place, {}, reader));
    quant.weight_block_size.push_back(size);
  }
  return {};
}

// What kv_cache_scheme says, where it is an object; modelopt may keep it one level deeper.
std::optional<KvCacheScheme> kv_cache_scheme(const QuantSource& source) {
  const json::Value* inner = member(source, "quantization");
  const json::Value* scheme = inner != nullptr ? inner->find_non_null("kv_cache_scheme") : nullptr;
  if (scheme == nullptr) scheme = member(source, "kv_cache_scheme");
  if (scheme == nullptr || !scheme->is_object()) return std::nullopt;
  KvCacheScheme out;
  const json::Value* type = scheme->find_non_null("type");
  if (type != nullptr && type->is_string()) out.type = type->as_string();
  const json::Value* bits = scheme->find_non_null("num_bits");
  if (bits != nullptr && bits->is_integer()) out.num_bits = bits->as_integer();
  const json::Value* strategy = scheme->find_non_null("strategy");
  if (strategy != nullptr && strategy->is_string()) out.strategy = strategy->as_string();
  const json::Value* dynamic = scheme->find_non_null("dynamic");
  if (dynamic != nullptr && dynamic->is_bool()) out.dynamic = dynamic->as_bool();
  return out;
}

// The KV cache's type: an algorithm's name, a scheme as object, or (written by one tool) as string.
Result<void> read_kv_cache(const QuantSource& source, const FieldReader& reader,
                           Quantization& quant) {
  KERNELPATH_TRY(algo, name_of(source, "kv_cache_quant_algo"));
  if (algo) {
    quant.kv_cache_dtype = {to_lower(*algo), algo.origin};
    return {};
  }
  const json::Value* scheme = member(source, "kv_cache_scheme");
  if (scheme == nullptr) return {};
  Origin origin = origin_of(source, "kv_cache_scheme");
  if (scheme->is_string()) {
    KERNELPATH_TRY(name, to_name(*scheme, origin.where));
    reader.warn("CONFIG-KV-SCHEME", origin.where,
                fmt::format("kv_cache_scheme is the string {} where an object is usual; read as {}",
                            scheme->brief(), to_lower(name)));
    quant.kv_cache_dtype = {to_lower(name), std::move(origin)};
    return {};
  }
  if (!scheme->is_object()) return fail(type_error(*scheme, origin.where, "an object"));
  const json::Value* type = scheme->find_non_null("type");
  const json::Value* bits = scheme->find_non_null("num_bits");
  if (bits == nullptr) return {};
  KERNELPATH_TRY(width,
                 to_integer(*bits, origin.where + "/num_bits", {.min = 1, .max = 64}, reader));
  const bool floating = type == nullptr || (type->is_string() && type->as_string() == "float");
  origin.where += "/num_bits";
  quant.kv_cache_dtype = {
      floating ? (width == 4 ? "nvfp4" : fmt::format("fp{}", width)) : fmt::format("int{}", width),
      std::move(origin)};
  return {};
}

// Modules that stay as they were; names differ by tool.
Result<void> read_excluded(const QuantSource& source, Quantization& quant) {
  for (const std::string_view name :
       {"exclude_modules", "ignore", "modules_to_not_convert", "ignored_layers"}) {
    const json::Value* list = member(source, name);
    if (list == nullptr || !list->is_array()) continue;
    quant.exclude_modules.reserve(list->items().size());
    for (const json::Value& item : list->items()) {
      if (!item.is_string()) {
        return fail(type_error(
            item, fmt::format("{}/{}/{}", source.pointer, name, quant.exclude_modules.size()),
            "a string"));
      }
      quant.exclude_modules.push_back(item.as_string());
    }
    return {};
  }
  return {};
}

Result<void> read_layer_algos(const QuantSource& source, Quantization& quant) {
  const json::Value* layers = member(source, "quantized_layers");
  if (layers == nullptr) return {};
  const std::string where = source.pointer + "/quantized_layers";
  if (!layers->is_object()) return fail(type_error(*layers, where, "an object"));
  quant.layer_algos.reserve(layers->members().size());
  for (const json::Member& layer : layers->members()) {
    const json::Value* algo = layer.value.find_non_null("quant_algo");
    if (algo == nullptr || !algo->is_string()) continue;
    quant.layer_algos.emplace_back(layer.key, to_upper(algo->as_string()));
  }
  return {};
}

// The tool's name. modelopt files may leave it out; other fields then tell.
Result<StringField> read_method(const QuantSource& source, const FieldReader& reader) {
  KERNELPATH_TRY(stated, name_of(source, "quant_method"));
  if (stated) return StringField{to_lower(*stated), stated.origin};
  struct Sign {
    std::string_view field;
    std::string_view method;
  };
  constexpr std::array<Sign, 5> kSigns = {{{"quant_algo", "modelopt"},
                                           {"config_groups", "compressed-tensors"},
                                           {"load_in_4bit", "bitsandbytes"},
                                           {"load_in_8bit", "bitsandbytes"},
                                           {"w_bit", "awq"}}};
  for (const Sign& sign : kSigns) {
    if (member(source, sign.field) == nullptr) continue;
    if (source.kind == OriginKind::kField) {
      reader.warn(
          "CONFIG-QUANT-METHOD", source.pointer + "/quant_method",
          fmt::format("quant_method is missing; {} by the field {}", sign.method, sign.field));
    }
    Origin origin = origin_of(source, sign.field);
    origin.rule = fmt::format("the field {} is there", sign.field);
    return StringField{std::string(sign.method), std::move(origin)};
  }
  if (source.kind == OriginKind::kField) {
    reader.warn("CONFIG-QUANT-METHOD", source.pointer + "/quant_method",
                "quant_method is missing, and no other field tells the method");
  }
  return StringField{};
}

}  // namespace

Result<Quantization> read_quantization(const QuantSource& source, const FieldReader& reader) {
  Quantization quant;
  KERNELPATH_TRY(method, read_method(source, reader));
  quant.method = method;
  KERNELPATH_CHECK_OK(read_block_size(source, reader, quant));
  KERNELPATH_TRY(bits, number_of(source, reader, {"bits", "w_bit", "weight_bits"}));
  quant.weight_bits = bits;
  KERNELPATH_TRY(group, number_of(source, reader, {"group_size", "q_group_size"}));
  quant.group_size = group;
  KERNELPATH_TRY(scheme, name_of(source, "activation_scheme"));
  quant.activation_scheme = scheme;
  KERNELPATH_CHECK_OK(read_kv_cache(source, reader, quant));
  quant.kv_cache_scheme = kv_cache_scheme(source);
  KERNELPATH_CHECK_OK(read_excluded(source, quant));
  KERNELPATH_CHECK_OK(read_layer_algos(source, quant));
  KERNELPATH_TRY(algo, name_of(source, "quant_algo"));
  if (algo) quant.algo = {to_upper(*algo), algo.origin};
  KERNELPATH_CHECK_OK(derive_algorithm(*source.object, source.pointer, reader, quant));
  return quant;
}

void complete(Quantization& own, const Quantization& other) {
  const auto fill = [](auto& field, const auto& from) {
    if (!field && from) field = from;
  };
  // Another tool's details would not describe these weights.
  if (own.any() && other.algo && own.algo && *own.algo != *other.algo) {
    fill(own.kv_cache_dtype, other.kv_cache_dtype);
    return;
  }
  fill(own.method, other.method);
  fill(own.algo, other.algo);
  fill(own.weight_bits, other.weight_bits);
  fill(own.group_size, other.group_size);
  fill(own.activation_scheme, other.activation_scheme);
  fill(own.kv_cache_dtype, other.kv_cache_dtype);
  if (!own.kv_cache_scheme) own.kv_cache_scheme = other.kv_cache_scheme;
  if (own.weight_block_size.empty()) own.weight_block_size = other.weight_block_size;
  if (own.exclude_modules.empty()) own.exclude_modules = other.exclude_modules;
  if (own.layer_algos.empty()) own.layer_algos = other.layer_algos;
}

void compare(const Quantization& own, const Quantization& sibling, const FieldReader& reader) {
  if (!own.any()) return;
  const auto check = [&](std::string_view what, const StringField& a, const StringField& b) {
    if (!b || a.value == b.value) return;
    reader.warn("CONFIG-QUANT-CONFLICT",
                a.origin.where.empty() ? own.method.origin.where : a.origin.where,
                fmt::format("{} is {} in config.json and {} in {}; TensorRT-LLM believes the file "
                            "beside it, vLLM and SGLang believe config.json",
                            what, a.value_or("not stated"), *b, b.origin.where));
  };
  check("the weights' algorithm", own.algo, sibling.algo);
  check("the KV cache's type", own.kv_cache_dtype, sibling.kv_cache_dtype);
}

Result<void> derive_quantization(Derivation& d) {
  for (const bool outer : {true, false}) {
    const Names names = {"quantization_config", "compression_config"};
    const Found found = outer ? d.read.find_outer(names) : d.read.find_stated(names);
    if (!found) continue;
    if (!found.value->is_object()) {
      return fail(type_error(*found.value, found.origin.where, "an object"));
    }
    if (found.value->members().empty()) continue;
    KERNELPATH_TRY(quant, read_quantization({found.value, found.origin.where}, d.read));
    d.out.quantization = std::move(quant);
    break;
  }
  KERNELPATH_TRY(experts, read_name(d.read, {"expert_dtype"}));
  d.out.quantization.expert_dtype = experts;
  return {};
}

}  // namespace kernelpath::config
