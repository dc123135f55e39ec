#include "engines/sglang/request.h"

#include "base/text.h"
#include "base/units.h"
#include "engines/setting_value.h"
#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::sglang {
namespace {

using json::Value;

constexpr std::int64_t kMebibyte = std::int64_t{1024} * 1024;

// --- values --------------------------------------------------------------------------------------

std::string plain_type(std::string_view type) {
  constexpr std::string_view kOptional = "Optional[";
  if (!type.starts_with(kOptional) || !type.ends_with("]")) return std::string(type);
  return std::string(type.substr(kOptional.size(), type.size() - kOptional.size() - 1));
}

// Words between commas, or JSON.
std::optional<Value> parse_structure(const std::string& text, bool is_list) {
  if (text.starts_with("[") || text.starts_with("{")) {
    auto document = json::parse(text, "--set");
    if (!document) return std::nullopt;
    return document->root;
  }
  if (!is_list) return Value::string(text);
  std::vector<Value> items;
  for (const std::string& word : split(text, ',')) {
    const auto number = parse_integer(word);
    items.push_back(number ? Value::integer(*number) : Value::string(word));
  }
  return Value::array(std::move(items));
}

// Nothing where the text is no value of the argument's type.
std::optional<Value> parse_value(const ArgumentRow& row, const std::string& text) {
  if (is_none(text) && !contains(row.choices, text)) return Value::null();
  const std::string type = plain_type(row.type);
  if (type == "bool") {
    const auto flag = parse_flag(text);
    return flag ? std::optional(Value::boolean(*flag)) : std::nullopt;
  }
  if (type == "int") {
    const auto number = parse_integer(text);
    return number ? std::optional(Value::integer(*number)) : std::nullopt;
  }
  if (type == "float") {
    const auto number = parse_number(text);
    return number ? std::optional(Value::number(*number)) : std::nullopt;
  }
  const bool is_list = type.starts_with("List[") || type.starts_with("Union[set[");
  const bool is_structure = is_list || type.starts_with("Dict[") || type.starts_with("Union[") ||
                            type == "CudaGraphConfig";
  return is_structure ? parse_structure(text, is_list) : Value::string(text);
}

std::string_view type_words(const ArgumentRow& row) {
  const std::string type = plain_type(row.type);
  if (type == "bool") return engines::type_words(SettingType::kBool);
  if (type == "int") return engines::type_words(SettingType::kInteger);
  return type == "float" ? engines::type_words(SettingType::kNumber)
                         : "a list or an object in JSON";
}

// --- options -------------------------------------------------------------------------------------

std::string cache_type_name(const std::string& name) {
  const std::string lower = to_lower(name);
  return lower == "fp8" ? "fp8_e4m3" : lower;
}

std::string algorithm_name(const std::string& mode) {
  const std::string upper = to_upper(mode);
  if (upper == "MTP") return "NEXTN";
  return upper == "DRAFT" ? "STANDALONE" : upper;
}

struct Stated {
  std::string_view argument;
  std::string_view option;
  std::optional<std::string> value;
};

std::optional<std::string> if_not_one(std::int64_t size) {
  return size == 1 ? std::nullopt : std::optional(fmt::to_string(size));
}

std::optional<std::string> as_text(const std::optional<std::int64_t>& value) {
  return value ? std::optional(fmt::to_string(*value)) : std::nullopt;
}

// --draft-tokens counts what the draft proposes, the engine also the token that is verified.
void add_draft_sizes(const Deployment& deployment, std::vector<Stated>& out) {
  constexpr std::string_view kOption = "--draft-tokens";
  const std::string algorithm = algorithm_name(deployment.speculative.value_or(""));
  const bool in_one_pass = algorithm == "NGRAM" || algorithm == "DFLASH" || algorithm == "DSPARK";
  out.push_back({"speculative_eagle_topk", "--draft-topk", as_text(deployment.draft_topk)});
  if (!deployment.draft_tokens) return;
  const std::int64_t tokens = *deployment.draft_tokens;
  if (in_one_pass) {
    out.push_back({"speculative_num_draft_tokens", kOption, fmt::to_string(tokens)});
    return;
  }
  out.push_back({"speculative_num_steps", kOption, fmt::to_string(tokens)});
  out.push_back({"speculative_num_draft_tokens", kOption, fmt::to_string(tokens + 1)});
  if (!deployment.draft_topk) out.push_back({"speculative_eagle_topk", kOption, "1"});
}

std::vector<Stated> stated_by_options(const Deployment& deployment) {
  const auto map = [](const std::optional<std::string>& value, auto convert) {
    return value ? std::optional<std::string>(convert(*value)) : std::nullopt;
  };
  std::vector<Stated> out = {
      {"attention_backend", "--attention-backend", map(deployment.backend, to_lower)},
      {"dtype", "--dtype", map(deployment.dtype, torch_dtype_name)},
      {"kv_cache_dtype", "--kv-cache-dtype", map(deployment.kv_dtype, cache_type_name)},
      {"quantization", "--quantization", deployment.quantization},
      {"page_size", "--page-size", as_text(deployment.page_size)},
      {"context_length", "--max-model-len", as_text(deployment.max_model_len)},
      {"tp_size", "--tp", if_not_one(deployment.tp)},
      {"pp_size", "--pp", if_not_one(deployment.pp)},
      {"dp_size", "--dp", if_not_one(deployment.dp)},
      {"ep_size", "--ep", if_not_one(deployment.ep)},
      {"attn_cp_size", "--cp", if_not_one(deployment.cp)},
      {"dcp_size", "--dcp", if_not_one(deployment.dcp)},
      {"speculative_algorithm", "--speculative", map(deployment.speculative, algorithm_name)},
      {"speculative_draft_model_path", "--speculative", deployment.draft_model},
  };
  add_draft_sizes(deployment, out);
  return out;
}

Error unknown_argument(const Profile& profile, std::string_view name, std::string_view where) {
  std::vector<std::string_view> names;
  for (const ArgumentRow& row : profile.arguments) names.push_back(row.name);
  return {.code = ErrorCode::kUsageUnknown,
          .message = fmt::format("sglang {} has no argument of this name", profile.version),
          .where = std::string(where),
          .hint = "llm-inspect --list settings --engine sglang prints them all",
          .near_matches = near_matches(name, names)};
}

Error unknown_choice(const ArgumentRow& row, const std::string& value, std::string_view where) {
  const std::vector<std::string_view> choices(row.choices.begin(), row.choices.end());
  return {.code = ErrorCode::kUsageUnknown,
          .message = fmt::format("{} is not one of {}", row.name, join_words(row.choices, "or")),
          .where = std::string(where),
          .value = shorten(value, 64),
          .near_matches = near_matches(value, choices)};
}

Result<void> set_argument(const Profile& profile, std::string_view name, const std::string& text,
                          std::string_view option, GivenArguments& out) {
  const ArgumentRow* row = profile.find_argument(name);
  if (row == nullptr || name.starts_with("_")) return fail(unknown_argument(profile, name, option));
  std::optional<Value> value = parse_value(*row, text);
  if (!value) {
    return fail({.code = ErrorCode::kUsage,
                 .message = fmt::format("{} takes {}", row->name, type_words(*row)),
                 .where = std::string(option),
                 .value = shorten(text, 64)});
  }
  if (value->is_string() && !row->choices.empty() && !contains(row->choices, text)) {
    return fail(unknown_choice(*row, text, option));
  }
  const auto same = [&](const auto& given) { return given.first == row->name; };
  const auto found = std::find_if(out.values.begin(), out.values.end(), same);
  if (found == out.values.end()) {
    out.values.emplace_back(row->name, std::move(*value));
    out.set_by.emplace_back(row->name, std::string(option));
    return {};
  }
  if (found->second == *value) return {};
  return fail({.code = ErrorCode::kUsageConflict,
               .message = fmt::format("{} is given twice, with different values: {} and {}",
                                      row->name, *out.option_of(row->name), option),
               .where = std::string(option),
               .value = shorten(text, 64)});
}

// "gfx942" → 9, 4; "gfx90a" → 9, 0; "gfx1100" → 11, 0.
void read_gfx(const std::string& target, Platform& platform) {
  constexpr std::size_t kPrefix = 3;
  if (target.size() < kPrefix + 3 || !target.starts_with("gfx")) return;
  const std::string digits = target.substr(kPrefix);
  const auto major = parse_integer(digits.substr(0, digits.size() - 2));
  const auto minor = parse_integer(digits.substr(digits.size() - 2, 1));
  if (!major || !minor) return;
  platform.major = static_cast<int>(*major);
  platform.minor = static_cast<int>(*minor);
}

// hf_quant_config.json as far as the engine reads it.
Value sibling_file(const config::ModelConfig& model) {
  if (!model.sibling_quantization || !model.sibling_quantization->algo) return Value::null();
  const config::Quantization& stated = *model.sibling_quantization;
  std::vector<json::Member> members = {
      {.key = "quant_algo", .value = Value::string(*stated.algo), .key_offset = 0}};
  if (stated.kv_cache_dtype) {
    members.push_back({.key = "kv_cache_quant_algo",
                       .value = Value::string(to_upper(*stated.kv_cache_dtype)),
                       .key_offset = 0});
  }
  return Value::object(
      {{.key = "quantization", .value = Value::object(std::move(members)), .key_offset = 0}});
}

}  // namespace

const std::string* GivenArguments::option_of(std::string_view name) const {
  const auto found = std::find_if(set_by.begin(), set_by.end(),
                                  [&](const auto& row) { return row.first == name; });
  return found == set_by.end() ? nullptr : &found->second;
}

Result<GivenArguments> read_arguments(const Profile& profile, const Deployment& deployment) {
  GivenArguments out;
  for (const auto& [field, value] : deployment.settings) {
    std::string name = field;
    std::replace(name.begin(), name.end(), '-', '_');
    KERNELPATH_CHECK_OK(set_argument(profile, name, value, "--set sglang." + field, out));
  }
  for (const Stated& stated : stated_by_options(deployment)) {
    if (!stated.value) continue;
    KERNELPATH_CHECK_OK(set_argument(profile, stated.argument, *stated.value, stated.option, out));
  }
  return out;
}

std::optional<Platform> platform_of(const hardware::Device& device,
                                    const Environment& environment) {
  if (device.platform == hardware::Platform::kAscend) return std::nullopt;
  Platform platform;
  platform.kind = device.platform;
  if (device.platform == hardware::Platform::kCuda) {
    if (!device.capability) return std::nullopt;
    platform.major = device.capability->major;
    platform.minor = device.capability->minor;
  }
  if (device.platform == hardware::Platform::kRocm) read_gfx(device.gfx_target, platform);
  platform.flashinfer_installed = environment.available("flashinfer");
  platform.has_amx = environment.available("amx");
  return platform;
}

Launch::Input launch_input(const Request& request, const Platform& platform,
                           const GivenArguments& arguments) {
  Launch::Input input{.platform = platform};
  input.model = {.config = request.model.file, .quant_config = sibling_file(request.model)};
  if (request.draft != nullptr) {
    input.draft = {.config = request.draft->file, .quant_config = sibling_file(*request.draft)};
  }
  if (request.device.memory_bytes && platform.kind != hardware::Platform::kCpu) {
    input.gpu_memory_mib = *request.device.memory_bytes / kMebibyte;
  }
  input.arguments = arguments.values;
  input.variables = request.environment.variables;
  return input;
}

}  // namespace kernelpath::engines::sglang
