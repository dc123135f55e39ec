#include "kernels/cuda/prefill.h"

#include "gpu_case.h"
#include "kernels/cuda/capabilities.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
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
  // Queries of the cache's own type.
  void expect_reference(PagedCase& paged) { expect_reference(paged, paged.storage.type); }
  void expect_reference(PagedCase& paged, DataType query_type) {
    GpuCase on_gpu(paged, device, query_type);
    on_gpu.run_prefill();
    expect_close(on_gpu.output(), on_gpu.reference(), tolerance_of(paged.storage.type, query_type));
  }
};

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
  expect_equal_bits(on_gpu, [](GpuCase& one) { one.run_prefill(); });
}

// Small: scripts/gpu-check runs it under the sanitizers.
TEST_F(CudaPrefill, EveryInstantiation_AgreesWithTheReference) {
  for (const DataType type : attention::kDataTypes) {
    if (!cuda::kPrefillCapabilities.row.kv_types.has(type)) continue;
    for (const auto& [k, v] :
         {std::pair{64, 64}, {80, 80}, {96, 96}, {128, 128}, {192, 128}, {192, 192}, {256, 256}}) {
      if (!cuda::kPrefillCapabilities.has_head_dim(type, k)) continue;
      SCOPED_TRACE(std::string(attention::data_type_name(type)) + " " + std::to_string(k) + " " +
                   std::to_string(v));
      PagedCase paged(heads(2, 1, k, v), {{70, 290}, {1, 20}},
                      {.type = type, .layout = KvLayout::kHnd, .v_scale = 0.5F});
      expect_reference(paged, DataType::kBf16);
    }
  }
}

TEST_F(CudaPrefill, HeadSizes_AgreeWithTheReference) {
  for (const auto& [k, v] : {std::pair{64, 64},
                             {80, 80},
                             {96, 96},
                             {128, 128},
                             {192, 128},
                             {192, 192},
                             {256, 256},
                             {48, 112},
                             {256, 64}}) {
    for (const DataType type : {DataType::kBf16, DataType::kF16}) {
      SCOPED_TRACE(std::to_string(k) + " " + std::to_string(v));
      PagedCase paged(heads(4, 2, k, v), {{130, 700}, {300, 300}, {1, 20}},
                      {.type = type, .layout = KvLayout::kHnd});
      expect_reference(paged);
    }
  }
}

TEST_F(CudaPrefill, WidenedCaches_AgreeWithTheReference) {
  for (const DataType type : {DataType::kFp8E4m3, DataType::kFp8E5m2, DataType::kNvfp4}) {
    for (const auto& [k, v] :
         {std::pair{64, 64}, {80, 80}, {96, 96}, {128, 128}, {192, 128}, {192, 192}, {256, 256}}) {
      if (!cuda::kPrefillCapabilities.has_head_dim(type, k)) continue;
      for (const std::int64_t page_size : {1, 16, 48}) {
        SCOPED_TRACE(std::string(attention::data_type_name(type)) + " " + std::to_string(k) + " " +
                     std::to_string(v) + " " + std::to_string(page_size));
        PagedCase paged(heads(4, 2, k, v), {{130, 700}, {300, 300}, {1, 20}},
                        {.type = type,
                         .layout = page_size == 48 ? KvLayout::kNhd : KvLayout::kHnd,
                         .page_size = page_size,
                         .k_scale = 0.75F,
                         .v_scale = 1.5F});
        expect_reference(paged, page_size == 16 ? DataType::kF16 : DataType::kBf16);
      }
    }
  }
}

TEST_F(CudaPrefill, QueriesOfTheOtherType_AgreeWithTheReference) {
  PagedCase narrow(heads(4, 2), {{130, 700}, {3, 20}}, {.type = DataType::kBf16});
  expect_reference(narrow, DataType::kF16);
  PagedCase wide(heads(4, 2), {{130, 700}, {3, 20}}, {.type = DataType::kF16});
  expect_reference(wide, DataType::kBf16);
}

TEST_F(CudaPrefill, HeadScales_MultiplyScoresAndOutputs) {
  PagedCase paged(heads(8, 2), {{200, 300}, {2, 50}}, {.type = DataType::kFp8E4m3});
  GpuCase on_gpu(paged, device);
  on_gpu.set_head_scales({2.0F, 0.25F}, {0.5F, 4.0F});
  on_gpu.run_prefill();
  expect_close(on_gpu.output(), on_gpu.reference(), 6e-3F);
}

// Queries beyond f16's range: bf16 queries are scaled before they become f16.
TEST_F(CudaPrefill, HugeQueries_DoNotOverflowInF16) {
  for (const DataType type : {DataType::kF16, DataType::kFp8E4m3, DataType::kNvfp4}) {
    Geometry geometry = heads(4, 2);
    geometry.softmax_scale = 1e-6F;
    PagedCase paged(geometry, {{150, 200}}, {.type = type});
    for (float& value : paged.q) value *= 1e6F;
    expect_reference(paged, DataType::kBf16);
  }
}

TEST_F(CudaPrefill, NanCodeOfE4m3_IsANanAndStaysInItsHead) {
  PagedCase paged(heads(4, 2), {{3, 40}}, {.type = DataType::kFp8E4m3, .layout = KvLayout::kHnd});
  GpuCase on_gpu(paged, device);
  const std::uint8_t code = 0x7F;
  // The first element of the first token of head 0.
  const std::int64_t at = paged.block_table[0] * on_gpu.params.v.page_stride;
  expect_ok(cuda::copy_to_device(on_gpu.params.v.data + at, &code, 1));
  on_gpu.run_prefill();
  const Output got = on_gpu.output();
  for (std::size_t row = 0; row < 12; ++row) {
    for (std::size_t d = 0; d < 128; ++d) {
      EXPECT_EQ(std::isnan(got.o[row * 128 + d]), row % 4 < 2 && d == 0) << row << " " << d;
    }
  }
}

TEST_F(CudaPrefill, GraphReplay_FollowsChangedLengths) {
  PagedCase paged(heads(8, 2), {{200, 900}, {100, 333}}, {.type = DataType::kBf16});
  GpuCase on_gpu(paged, device);
  auto stream = cuda::Stream::create();
  expect_ok(stream);
  on_gpu.run_prefill();  // loads the kernel before the capture
  auto graph = cuda::Graph::capture(
      stream->view(), [&] { return cuda::launch_prefill(on_gpu.params, device, stream->view()); });
  expect_ok(graph);
  for (const auto& lengths : {std::vector<std::int32_t>{900, 333}, {200, 100}, {517, 0}}) {
    paged.seq_lens = lengths;
    on_gpu.set_lengths(lengths);
    on_gpu.poison_output();
    expect_ok(graph->replay(stream->view()));
    expect_ok(stream->wait());
    expect_close(on_gpu.output(), on_gpu.reference(), 6e-3F);
  }
}

}  // namespace
}  // namespace kernelpath::testing
