#pragma once

#include "attention/params.h"
#include "base/result.h"
#include "kernels/cuda/capabilities.h"
#include "kernels/cuda/gqa_decode.h"
#include "kernels/cuda/sm80/gqa/kernel.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What the host sides of the attention kernels share: for this folder's units and their tests.
namespace kernelpath::kernels::cuda {

// Everything that is wrong with a call, in the user's words.
class Findings {
 public:
  explicit Findings(std::string_view kernels) : kernels_(kernels) {}
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (!holds) findings_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  [[nodiscard]] Result<void> result() const {
    if (findings_.empty()) return {};
    return fail(
        {.code = ErrorCode::kUnavailable,
         .message = fmt::format("the CUDA {} kernels cannot run this call: {}", kernels_,
                                fmt::join(findings_, "; ")),
         .hint = "choose another KV cache type, head size or page size, or run on the CPU"});
  }

 private:
  std::string_view kernels_;
  std::vector<std::string> findings_;
};

// Adds everything that a call asks for and its kernel does not claim.
void require_claimed(Findings& findings, const KernelCapabilities& kernel,
                     const DecodeParams& params, const DeviceInfo& device);

// What a call needs beyond plain causal attention.
attention::FeatureSet features_of(const DecodeParams& params);

// A side in bytes.
sm80::SideParams side_of(const attention::PagedRows& rows, std::int64_t dim,
                         const float* head_scales);

constexpr std::int64_t stride_or(std::int64_t stride, std::int64_t heads, std::int64_t dim) {
  return stride != 0 ? stride : heads * dim;
}

}  // namespace kernelpath::kernels::cuda
