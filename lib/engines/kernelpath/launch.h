#pragma once

#include "attention/data_type.h"
#include "attention/params.h"
#include "base/result.h"
#include "engines/request.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::kernelpath {

// What the runtime is started with.
struct Launch {
  attention::DataType kv_type = attention::DataType::kF32;
  // The rows of a head are adjacent: decoding reads them as a stream.
  attention::KvLayout kv_layout = attention::KvLayout::kHnd;
  std::int64_t page_size = 16;
  std::string backend = {};  // as written; empty: the first that can
  std::string kernel =
      "auto";  // a set of kernels by instruction set; auto: the processor's fastest
  // Where the named backend cannot: the first that can, which the Resolution says; else refused.
  bool falls_back = false;
  std::int64_t tp = 1;
  std::int64_t dcp = 1;
  std::string kv_set_by = "engine default";
  std::string page_set_by = "engine default";
  std::string kernel_set_by = "engine default";
};

// A field of --set kernelpath.FIELD=VALUE.
struct SettingInfo {
  std::string_view name;
  std::string_view fallback;
  std::string_view about;
};
std::span<const SettingInfo> settings();

// Errors: kUsageUnknown for a backend, KV dtype, setting or its value that no table holds;
// kConfigValue for sizes below 1.
Result<Launch> read_launch(const Deployment& deployment);

// What is asked for and the runtime does not have, one sentence each.
std::vector<std::string> unsupported_options(const Deployment& deployment);

// "f32", "bf16", "fp8_e4m3" …: how KV types are called in reports.
std::string_view short_name(attention::DataType type);

}  // namespace kernelpath::engines::kernelpath
