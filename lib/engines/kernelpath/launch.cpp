#include "engines/kernelpath/launch.h"

#include "attention/selector.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::kernelpath {
namespace {

constexpr std::array<SettingInfo, 3> kSettings{
    {{.name = "fallback",
      .fallback = "error",
      .about = "where the named backend cannot run a layer: error, or warn and take one that can"},
     {.name = "kernel",
      .fallback = "auto",
      .about = "kernels by instruction set: auto, reference, avx2, avx512 or amx"},
     {.name = "kv_layout", .fallback = "HND", .about = "order inside a page: HND or NHD"}}};

// Beyond any machine: products with it fit 64 bits.
constexpr std::int64_t kMostRanks = 65536;

Unexpected no_such_value(const std::string& field, const std::string& value,
                         std::string_view allowed) {
  return fail({.code = ErrorCode::kUsageUnknown,
               .message = fmt::format("{} is {}", field, allowed),
               .where = "--set kernelpath." + field,
               .value = shorten(value, 64)});
}

Result<void> read_fallback(const std::string& value, Launch& out) {
  if (!equal_ignoring_case(value, "error") && !equal_ignoring_case(value, "warn")) {
    return no_such_value("fallback", value, "error or warn");
  }
  out.falls_back = equal_ignoring_case(value, "warn");
  return {};
}

Result<void> read_kernel(const std::string& value, Launch& out) {
  constexpr std::array<std::string_view, 5> kKernels = {"auto", "reference", "avx2", "avx512",
                                                        "amx"};
  const std::string name = to_lower(value);
  if (std::ranges::find(kKernels, name) == kKernels.end()) {
    return no_such_value("kernel", value, "auto, reference, avx2, avx512 or amx");
  }
  out.kernel = name;
  out.kernel_set_by = "user";
  return {};
}

Result<attention::DataType> read_kv_type(const std::string& name) {
  if (equal_ignoring_case(name, "auto")) return attention::DataType::kF32;
  if (const auto type = attention::find_data_type(name)) return *type;
  std::vector<std::string> known;
  std::vector<std::string_view> candidates;
  for (const attention::DataType type : attention::kDataTypes) {
    known.emplace_back(short_name(type));
    candidates.push_back(short_name(type));
  }
  return fail(
      {.code = ErrorCode::kUsageUnknown,
       .message = fmt::format("kernelpath has no such KV dtype; it has {}", join_words(known)),
       .where = "--kv",
       .value = shorten(name, 64),
       .near_matches = near_matches(name, candidates)});
}

Result<void> read_setting(const std::string& field, const std::string& value, Launch& out) {
  if (field == "fallback") return read_fallback(value, out);
  if (field == "kernel") return read_kernel(value, out);
  if (field != "kv_layout") {
    std::vector<std::string> known;
    std::vector<std::string_view> names;
    for (const SettingInfo& info : kSettings) {
      known.emplace_back(info.name);
      names.push_back(info.name);
    }
    return fail(
        {.code = ErrorCode::kUsageUnknown,
         .message = fmt::format("kernelpath has no such setting; it has {}", join_words(known)),
         .where = "--set",
         .value = shorten(field, 64),
         .near_matches = near_matches(field, names)});
  }
  for (const auto layout : {attention::KvLayout::kNhd, attention::KvLayout::kHnd}) {
    if (!equal_ignoring_case(value, layout == attention::KvLayout::kNhd ? "NHD" : "HND")) continue;
    out.kv_layout = layout;
    return {};
  }
  return no_such_value("kv_layout", value, "HND or NHD");
}

}  // namespace

std::span<const SettingInfo> settings() { return kSettings; }

std::string_view short_name(attention::DataType type) {
  switch (type) {
    case attention::DataType::kF32:
      return "f32";
    case attention::DataType::kBf16:
      return "bf16";
    case attention::DataType::kF16:
      return "f16";
    case attention::DataType::kFp8E4m3:
    case attention::DataType::kFp8E5m2:
    case attention::DataType::kNvfp4:
      return attention::data_type_name(type);
  }
  return "";
}

Result<Launch> read_launch(const Deployment& deployment) {
  Launch out;
  if (deployment.kv_dtype) {
    KERNELPATH_TRY(type, read_kv_type(*deployment.kv_dtype));
    out.kv_type = type;
    out.kv_set_by = "user";
  }
  if (deployment.page_size) {
    if (*deployment.page_size < 1) {
      return fail({.code = ErrorCode::kConfigValue,
                   .message = "a page must hold at least 1 token",
                   .where = "--page-size",
                   .value = std::to_string(*deployment.page_size)});
    }
    out.page_size = *deployment.page_size;
    out.page_set_by = "user";
  }
  if (deployment.backend && !equal_ignoring_case(*deployment.backend, "auto")) {
    KERNELPATH_CHECK_OK(attention::find_backend(*deployment.backend));
    out.backend = *deployment.backend;
  }
  for (const auto& [field, value] : deployment.settings) {
    KERNELPATH_CHECK_OK(read_setting(field, value, out));
  }
  for (const auto& [option, ranks] :
       {std::pair{"--tp", deployment.tp}, {"--dcp", deployment.dcp}}) {
    if (ranks >= 1 && ranks <= kMostRanks) continue;
    return fail({.code = ErrorCode::kConfigValue,
                 .message = fmt::format("there can be 1 to {} ranks", kMostRanks),
                 .where = option,
                 .value = std::to_string(ranks)});
  }
  out.tp = deployment.tp;
  out.dcp = deployment.dcp;
  return out;
}

std::vector<std::string> unsupported_options(const Deployment& deployment) {
  std::vector<std::string> out;
  const auto size = [&](std::string_view option, std::int64_t value) {
    if (value > 1)
      out.push_back(fmt::format("{} {}: the runtime has no such ranks", option, value));
  };
  size("--pp", deployment.pp);
  size("--dp", deployment.dp);
  size("--ep", deployment.ep);
  size("--cp", deployment.cp);
  if (deployment.quantization) {
    out.push_back(fmt::format("--quantization {}: weights are used as the checkpoint holds them",
                              *deployment.quantization));
  }
  if (deployment.speculative && !equal_ignoring_case(*deployment.speculative, "ngram")) {
    out.push_back(fmt::format("--speculative {}: the runtime proposes n-grams only",
                              *deployment.speculative));
  }
  const bool other_dtype = deployment.dtype && !equal_ignoring_case(*deployment.dtype, "auto") &&
                           !equal_ignoring_case(*deployment.dtype, "float32");
  if (other_dtype) {
    out.push_back(fmt::format("--dtype {}: activations are float32", *deployment.dtype));
  }
  return out;
}

}  // namespace kernelpath::engines::kernelpath
