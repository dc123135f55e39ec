#include "engines/deepinfer/request.h"

#include "base/text.h"
#include "engines/deepinfer/python.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::deepinfer {
namespace {

Result<json::Value> typed_value(const ArgumentInfo& info, const std::string& text,
                                const std::string& where) {
  const auto wrong = [&] {
    return fail({.code = ErrorCode::kUsage,
                 .message = fmt::format("{} is of type {}", info.name, info.type),
                 .where = where,
                 .value = shorten(text, 64)});
  };
  if (text == "None" || text == "null") return json::Value::null();
  if (info.type == "int") {
    const auto number = python_int(text);
    if (!number) return wrong();
    return json::Value::integer(*number);
  }
  if (info.type == "float") {
    const auto number = python_float(text);
    if (!number) return wrong();
    return json::Value::number(*number);
  }
  if (info.type == "bool") {
    if (equal_ignoring_case(text, "true")) return json::Value::boolean(true);
    if (equal_ignoring_case(text, "false")) return json::Value::boolean(false);
    return wrong();
  }
  return json::Value::string(text);
}

struct Given {
  std::string value;
  std::string set_by;
};

// What the common options say of one argument.
std::optional<Given> common_option(const Deployment& deployment, std::string_view name) {
  const auto number = [](std::optional<std::int64_t> value,
                         std::string_view option) -> std::optional<Given> {
    if (!value) return std::nullopt;
    return Given{std::to_string(*value), std::string(option)};
  };
  const auto size = [&](std::int64_t value, std::string_view option) -> std::optional<Given> {
    if (value == 1) return std::nullopt;
    return number(value, option);
  };
  if (name == "max_model_len") return number(deployment.max_model_len, "--max-model-len");
  if (name == "tokens_per_block") return number(deployment.page_size, "--page-size");
  if (name == "data_parallel_size") return size(deployment.dp, "--dp");
  if (name == "context_parallel_size") return size(deployment.cp, "--cp");
  if (name == "expert_parallel_size") return size(deployment.ep, "--ep");
  return std::nullopt;
}

Result<std::optional<Given>> given_value(const Deployment& deployment, std::string_view name) {
  const std::optional<Given> option = common_option(deployment, name);
  const std::string* setting = deployment.setting(name);
  if (setting == nullptr) return option;
  const std::string where = fmt::format("--set deepinfer.{}", name);
  if (option && option->value != *setting) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = fmt::format("{} {} and {} say two things", option->set_by,
                                        option->value, where),
                 .where = where,
                 .value = shorten(*setting, 64)});
  }
  return std::optional<Given>(Given{*setting, where});
}

Result<void> check_names(const Deployment& deployment) {
  for (const auto& [field, value] : deployment.settings) {
    const auto table = argument_table();
    const bool known = std::ranges::any_of(
        table, [&key = field](const ArgumentInfo& info) { return info.name == key; });
    if (known) continue;
    std::vector<std::string_view> names;
    for (const ArgumentInfo& info : table) names.push_back(info.name);
    return fail({.code = ErrorCode::kUsageUnknown,
                 .message = "deepinfer has no such argument that decides anything here",
                 .where = "--set deepinfer." + shorten(field, 64),
                 .value = shorten(value, 64),
                 .near_matches = near_matches(field, names)});
  }
  return {};
}

std::vector<UnknownOption> unknown_options(const Deployment& deployment) {
  std::vector<UnknownOption> out;
  const auto add = [&](bool given, std::string option, std::string argument) {
    if (given) out.push_back({std::move(option), std::move(argument)});
  };
  add(deployment.backend.has_value(), "--backend", "attention_backend");
  add(deployment.kv_dtype.has_value(), "--kv-cache-dtype", "kv_cache_dtype");
  add(deployment.quantization.has_value(), "--quantization", "quantization");
  add(deployment.tp != 1, "--tp", "tensor_parallel_size");
  add(deployment.pp != 1, "--pp", "pipeline_parallel_size");
  add(deployment.dcp != 1, "--dcp", "decode_context_parallel_size");
  add(deployment.speculative.has_value(), "--speculative", "speculative_config");
  add(deployment.draft_topk.has_value(), "--draft-topk", "speculative_topk");
  return out;
}

}  // namespace

Result<Launch> read_launch(const Deployment& deployment, const Environment& environment) {
  KERNELPATH_CHECK_OK(check_names(deployment));
  Launch launch;
  std::vector<json::Member> members;
  for (const ArgumentInfo& info : argument_table()) {
    KERNELPATH_TRY(given, given_value(deployment, info.name));
    if (!given) continue;
    KERNELPATH_TRY(value, typed_value(info, given->value, given->set_by));
    members.push_back({.key = std::string(info.name), .value = value, .key_offset = 0});
    launch.stated.push_back({std::string(info.name), given->value, given->set_by});
  }
  auto arguments = read_arguments(json::Value::object(std::move(members)), "--set deepinfer");
  if (!arguments) {
    Error error = arguments.error();
    error.code = ErrorCode::kUsage;
    return fail(std::move(error));
  }
  launch.arguments = std::move(*arguments);
  launch.variables = environment.variables;
  if (deployment.draft_tokens) {
    constexpr std::string_view kName = "DEEPINFER_USE_NEXTN_DECODE";
    if (environment.variable(kName) == nullptr) {
      launch.variables.emplace_back(kName, std::to_string(*deployment.draft_tokens));
    }
  }
  launch.unknown = unknown_options(deployment);
  return launch;
}

std::optional<Machine> machine_of(const hardware::Device& device) {
  switch (device.platform) {
    case hardware::Platform::kAscend:
      return Machine{.platform = Platform::kAscend};
    case hardware::Platform::kCuda:
      if (!device.capability) return std::nullopt;
      return Machine{.platform = Platform::kCuda, .sm = device.capability->sm()};
    case hardware::Platform::kRocm:
    case hardware::Platform::kCpu:
      break;
  }
  return std::nullopt;
}

}  // namespace kernelpath::engines::deepinfer
