#include "attention_case.h"
#include "gpu_case.h"

#include <cstdint>
#include <string>
#include <vector>

// The CUDA kernels against attention outputs that were computed in float64 elsewhere: the inputs
// are rounded to 16 bits.
namespace kernelpath::testing {
namespace {

using attention::DataType;

class CudaGoldenAttention : public GpuTest {};

// Of the recorded outputs. Rounding the inputs alone moves an element of softcap_prefill by 0.027
// in bf16.
float recorded_tolerance(DataType type) { return type == DataType::kBf16 ? 0.03F : 0.02F; }

TEST_F(CudaGoldenAttention, ContiguousCases_AreCloseInHalves) {
  const std::vector<Case> cases = cases_of("attention");
  EXPECT_GE(cases.size(), 20U);
  for (const Case& recorded : cases) {
    if (recorded.text("name") == "large_logits") continue;  // rounding moves its peaked weights
    SCOPED_TRACE(recorded.text("name"));
    for (const DataType type : {DataType::kBf16, DataType::kF16}) {
      for (const std::int64_t page_size : {1, 16, 48}) {
        const auto layout = page_size == 16 ? attention::KvLayout::kHnd : attention::KvLayout::kNhd;
        PagedCase paged(
            recorded.geometry(), recorded.lengths(),
            {.type = type, .layout = layout, .page_size = page_size},
            {.q = recorded.tensor("q"), .k = recorded.tensor("k"), .v = recorded.tensor("v")});
        if (recorded.flag("has_sinks")) paged.sinks = recorded.tensor("sinks");
        GpuCase on_gpu(paged, device, type);
        on_gpu.run();
        expect_close(on_gpu.output(), recorded.output(), recorded_tolerance(type));
        // Of a float64 run on the rounded inputs.
        expect_close(on_gpu.output(), on_gpu.reference(), tolerance_of(type, type));
      }
    }
  }
}

}  // namespace
}  // namespace kernelpath::testing
