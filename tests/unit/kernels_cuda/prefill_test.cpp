#include "kernels/cuda/prefill.h"

#include "gpu_case.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Prefill attention on the GPU against the CPU's float64 reference.
namespace kernelpath::testing {
namespace {

namespace cuda = kernels::cuda;
using attention::DataType;
using attention::Geometry;
using attention::KvLayout;

class CudaPrefill : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (device.sm != 90) GTEST_SKIP() << "the device is sm_" << device.sm << ", not sm_90";
  }
  void expect_reference(PagedCase& paged) {
    GpuCase on_gpu(paged, device, paged.storage.type);
    on_gpu.run_prefill();
    expect_close(on_gpu.output(), on_gpu.reference(),
                 tolerance_of(paged.storage.type, paged.storage.type));
  }
};

Geometry heads(std::int64_t num_heads, std::int64_t num_kv_heads) {
  return {.num_heads = num_heads,
          .num_kv_heads = num_kv_heads,
          .head_dim = 128,
          .v_head_dim = 128,
          .softmax_scale = 1.0F / std::sqrt(128.0F)};
}

TEST_F(CudaPrefill, LengthsAroundATile_AgreeWithTheReference) {
  for (const DataType type : {DataType::kBf16, DataType::kF16}) {
    for (const std::int64_t length : {1, 2, 127, 128, 129, 255, 256, 257, 600}) {
      SCOPED_TRACE(length);
      PagedCase paged(heads(4, 2), {{length, length}, {1, length}, {(length + 1) / 2, length}},
                      {.type = type, .layout = KvLayout::kHnd});
      expect_reference(paged);
    }
  }
}

TEST_F(CudaPrefill, PagesAndLayouts_AgreeWithTheReference) {
  for (const std::int64_t page_size : {1, 5, 16, 48, 128, 1024}) {
    for (const KvLayout layout : {KvLayout::kNhd, KvLayout::kHnd}) {
      SCOPED_TRACE(page_size);
      PagedCase paged(heads(6, 2), {{200, 300}, {77, 77}},
                      {.type = DataType::kBf16, .layout = layout, .page_size = page_size});
      expect_reference(paged);
    }
  }
}

TEST_F(CudaPrefill, Masks_AgreeWithTheReference) {
  for (const std::int64_t window : {0, 1, 100, 300}) {
    for (const std::int64_t chunk : {0, 64, 200}) {
      for (const bool causal : {true, false}) {
        SCOPED_TRACE(std::to_string(window) + " " + std::to_string(chunk));
        Geometry geometry = heads(2, 1);
        geometry.window = window;
        geometry.chunk = chunk;
        geometry.causal = causal;
        PagedCase paged(geometry, {{500, 500}, {140, 400}}, {.type = DataType::kF16});
        expect_reference(paged);
      }
    }
  }
}

TEST_F(CudaPrefill, SoftcapSinksAndScales_AgreeWithTheReference) {
  for (const float softcap : {0.0F, 0.5F, 30.0F}) {
    for (const bool sinks : {false, true}) {
      Geometry geometry = heads(4, 2);
      geometry.softcap = softcap;
      PagedCase paged(geometry, {{300, 700}, {20, 20}},
                      {.type = DataType::kBf16, .k_scale = 2.0F, .v_scale = 0.5F});
      if (sinks) paged.sinks = {0.5F, -2.0F, 8.0F, -20.0F};
      expect_reference(paged);
    }
  }
}

TEST_F(CudaPrefill, RowsThatSeeNothing_AreZero) {
  PagedCase paged(heads(4, 2), {{1, 0}, {40, 20}, {3, 3}}, {.type = DataType::kBf16});
  expect_reference(paged);
}

TEST_F(CudaPrefill, PeakedScores_MoveTheMaximum) {
  PagedCase paged(heads(4, 2), {{400, 900}}, {.type = DataType::kF16});
  for (float& value : paged.q) value *= 30.0F;
  expect_reference(paged);
}

TEST_F(CudaPrefill, EqualInputs_GiveEqualBits) {
  PagedCase paged(heads(8, 2), {{700, 700}, {30, 500}}, {.type = DataType::kBf16});
  GpuCase on_gpu(paged, device);
  on_gpu.run_prefill();
  const std::vector<std::uint16_t> first = on_gpu.bits();
  for (int i = 0; i < 10; ++i) {
    on_gpu.poison_output();
    on_gpu.run_prefill();
    ASSERT_EQ(on_gpu.bits(), first);
  }
}

TEST_F(CudaPrefill, Unsupported_IsRefusedWithWhatIsSupported) {
  PagedCase paged(heads(4, 2), {{20, 20}}, {.type = DataType::kBf16});
  GpuCase on_gpu(paged, device);
  const auto refused = [&](auto change, std::string_view part) {
    cuda::DecodeParams params = on_gpu.params;
    change(params);
    const auto result = cuda::check_prefill(params, device);
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  };
  refused([](auto& p) { p.geometry.head_dim = 64; }, "128 is supported");
  refused([](auto& p) { p.k.type = p.v.type = DataType::kFp8E4m3; }, "bfloat16 and float16");
  refused([](auto& p) { p.query_type = DataType::kF16; }, "one type");
}

}  // namespace
}  // namespace kernelpath::testing
