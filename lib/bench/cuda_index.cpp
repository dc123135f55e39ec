#include "base/text.h"
#include "base/units.h"
#include "bench/cuda_target.h"

namespace kernelpath::bench {

Result<int> cuda_index(std::string_view name) {
  if (name == "cuda") return 0;
  constexpr std::string_view kPrefix = "cuda:";
  constexpr std::int64_t kMostDevices = 1024;
  if (name.starts_with(kPrefix)) {
    const Result<std::int64_t> index = parse_integer(name.substr(kPrefix.size()));
    if (index && *index >= 0 && *index < kMostDevices) return static_cast<int>(*index);
  }
  return fail({.code = ErrorCode::kUsage,
               .message = "a CUDA device is cuda or cuda:N",
               .where = "--device",
               .value = shorten(name, 64)});
}

}  // namespace kernelpath::bench
