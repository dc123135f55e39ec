#include "gpu_case.h"
#include "kernels/cuda/gqa_decode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

// Decode attention on the GPU against the CPU's float64 reference. Every slot that holds no token
// is NaN in the caches of these cases.
namespace kernelpath::testing {
namespace {

namespace cuda = kernels::cuda;
using attention::DataType;
using attention::Geometry;
using attention::KvLayout;

constexpr std::array kCacheTypes{DataType::kBf16, DataType::kF16, DataType::kFp8E4m3,
                                 DataType::kFp8E5m2, DataType::kNvfp4};

class CudaDecode : public GpuTest {};

TEST_F(CudaDecode, EveryCacheTypeLayoutAndQueryType_AgreesWithTheReference) {
  for (const DataType type : kCacheTypes) {
    for (const KvLayout layout : {KvLayout::kNhd, KvLayout::kHnd}) {
      for (const DataType query : {DataType::kBf16, DataType::kF16}) {
        for (const std::int64_t head_dim : {64, 128, 256}) {
          SCOPED_TRACE(std::string(attention::data_type_name(type)) + " " +
                       std::string(attention::data_type_name(query)) + " " +
                       std::to_string(head_dim));
          PagedCase paged(heads(8, 2, head_dim), {{1, 300}, {3, 77}, {1, 1}, {1, 1000}},
                          {.type = type, .layout = layout, .k_scale = 0.75F, .v_scale = 1.5F});
          expect_reference(paged, device, query);
        }
      }
    }
  }
}

// Rows of 80 and 96 elements end inside what a warp copies: the next head must not be read.
TEST_F(CudaDecode, EveryHeadSize_AgreesWithTheReference) {
  for (const std::int64_t head_dim : {16, 64, 80, 96, 128, 160, 192, 256}) {
    for (const DataType type : kCacheTypes) {
      if (type == DataType::kNvfp4 && head_dim % 64 != 0) continue;
      SCOPED_TRACE(head_dim);
      PagedCase paged(heads(4, 2, head_dim), {{2, 70}, {1, 16}}, {.type = type});
      expect_reference(paged, device);
    }
  }
}

TEST_F(CudaDecode, OtherVHeadDim_AgreesWithTheReference) {
  for (const auto& [k, v] : {std::pair{192, 128}, {128, 64}, {64, 128}, {80, 96}}) {
    SCOPED_TRACE(k);
    Geometry geometry = heads(8, 4, k);
    geometry.v_head_dim = v;
    PagedCase paged(geometry, {{1, 200}, {2, 33}}, {.type = DataType::kBf16});
    expect_reference(paged, device);
  }
}

TEST_F(CudaDecode, PageSizes_AgreeWithTheReference) {
  for (const std::int64_t page_size : {1, 5, 16, 32, 48, 64, 128, 1024}) {
    for (const KvLayout layout : {KvLayout::kNhd, KvLayout::kHnd}) {
      for (const DataType type : {DataType::kBf16, DataType::kFp8E4m3, DataType::kNvfp4}) {
        SCOPED_TRACE(page_size);
        PagedCase paged(heads(8, 2, 128),
                        {{1, page_size}, {1, page_size + 1}, {2, 2 * page_size - 1}, {1, 400}},
                        {.type = type, .layout = layout, .page_size = page_size});
        expect_reference(paged, device);
      }
    }
  }
}

TEST_F(CudaDecode, GroupsAndQueries_AgreeWithTheReference) {
  for (const std::int64_t group : {1, 2, 4, 7, 8, 16, 24, 64}) {
    for (const std::int64_t queries : {1, 2, 5, 8}) {
      for (const std::int64_t head_dim : {64, 128, 256}) {
        SCOPED_TRACE(std::to_string(group) + " × " + std::to_string(queries) + " of " +
                     std::to_string(head_dim));
        PagedCase paged(heads(2 * group, 2, head_dim),
                        {{queries, 150}, {1, 40}, {queries, queries}}, {.type = DataType::kBf16});
        expect_reference(paged, device);
      }
    }
  }
}

// A prompt's chunk: more queries than the kernel is made for.
TEST_F(CudaDecode, ManyQueries_AgreeWithTheReference) {
  for (const DataType type : {DataType::kBf16, DataType::kFp8E4m3}) {
    Geometry geometry = heads(12, 4, 128);
    PagedCase paged(geometry, {{300, 300}, {1, 77}, {129, 500}}, {.type = type});
    expect_reference(paged, device);
    geometry.window = 60;
    PagedCase windowed(geometry, {{300, 300}, {64, 100}}, {.type = type});
    expect_reference(windowed, device);
  }
}

TEST_F(CudaDecode, Masks_AgreeWithTheReference) {
  for (const std::int64_t window : {0, 1, 16, 100, 129}) {
    for (const std::int64_t chunk : {0, 8, 100, 256}) {
      for (const bool causal : {true, false}) {
        SCOPED_TRACE(std::to_string(window) + " " + std::to_string(chunk));
        Geometry geometry = heads(8, 2, 64);
        geometry.window = window;
        geometry.chunk = chunk;
        geometry.causal = causal;
        PagedCase paged(geometry, {{1, 700}, {8, 512}, {4, 257}, {3, 3}}, {.type = DataType::kF16});
        expect_reference(paged, device, DataType::kF16);
      }
    }
  }
}

TEST_F(CudaDecode, SoftcapAndSinks_AgreeWithTheReference) {
  for (const DataType type : kCacheTypes) {
    for (const float softcap : {0.0F, 0.5F, 30.0F}) {
      for (const bool sinks : {false, true}) {
        SCOPED_TRACE(std::string(attention::data_type_name(type)) + " " + std::to_string(softcap));
        Geometry geometry = heads(8, 2, 128);
        geometry.softcap = softcap;
        PagedCase paged(geometry, {{2, 5000}, {1, 20}, {1, 0}},
                        {.type = type, .k_scale = 2.0F, .v_scale = 0.5F});
        if (sinks) paged.sinks = {0.5F, -2.0F, 3.0F, 0.0F, 8.0F, -20.0F, 1.0F, -1.0F};
        expect_reference(paged, device);
      }
    }
  }
}

TEST_F(CudaDecode, RandomShapes_AgreeWithTheReference) {
  std::mt19937 random(20);
  const auto pick = [&](const std::vector<std::int64_t>& from) {
    return from[random() % from.size()];
  };
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    const DataType type = kCacheTypes[random() % kCacheTypes.size()];
    const std::int64_t kv_heads = pick({1, 2, 3, 8});
    const std::int64_t head_dim =
        type == DataType::kNvfp4 ? pick({64, 128, 192, 256}) : pick({64, 80, 96, 128, 192, 256});
    Geometry geometry = heads(kv_heads * pick({1, 2, 4, 5, 8, 12}), kv_heads, head_dim);
    geometry.window = pick({0, 0, 1, 63, 500});
    geometry.chunk = pick({0, 0, 0, 64, 300});
    geometry.softcap = pick({0, 0, 20}) != 0 ? 20.0F : 0.0F;
    const std::int64_t page_size = pick({1, 16, 16, 32, 64});
    std::vector<Lengths> lengths;
    const auto requests = static_cast<int>(1 + random() % 6);
    for (int r = 0; r < requests; ++r) {
      const std::int64_t longest = pick({page_size, page_size + 1, 64, 700, 2500});
      const auto queries = static_cast<std::int64_t>(1 + random() % 8);
      lengths.push_back({queries, std::max<std::int64_t>(
                                      queries, static_cast<std::int64_t>(random()) % longest)});
    }
    PagedCase paged(geometry, lengths,
                    {.type = type,
                     .layout = random() % 2 == 0 ? KvLayout::kNhd : KvLayout::kHnd,
                     .page_size = page_size,
                     .k_scale = 1.25F,
                     .v_scale = 0.5F},
                    static_cast<unsigned>(round));
    if (random() % 3 == 0) {
      for (std::int64_t h = 0; h < geometry.num_heads; ++h) {
        paged.sinks.push_back(static_cast<float>(random() % 9) - 4.0F);
      }
    }
    const DataType query = random() % 2 == 0 ? DataType::kBf16 : DataType::kF16;
    expect_reference(paged, device, query,
                     {.tile_tokens = static_cast<std::int32_t>(pick({0, 16, 64, 256})),
                      .item_charge = static_cast<std::int32_t>(pick({-1, 0, 2}))});
  }
}

TEST_F(CudaDecode, LongRequest_IsSplitOverAllWorkers) {
  PagedCase paged(heads(4, 1, 128), {{1, 131072}}, {.type = DataType::kBf16});
  expect_reference(paged, device);
  PagedCase bytes(heads(8, 1, 64), {{2, 131072}, {1, 5}},
                  {.type = DataType::kFp8E4m3, .layout = KvLayout::kHnd});
  expect_reference(bytes, device);
}

// Each row is masked entirely, or has no token at all: o = 0 and lse = -inf, also where such items
// are merged.
// Each warp has many whole steps of an item, goes on into the next item while its copies run, and
// meets a partial step, a mask and a later slot of a page in between.
TEST_F(CudaDecode, FewWorkers_TakeManyStepsInARow) {
  struct Shape {
    std::int64_t head_dim = 128;
    std::int64_t group = 4;
    std::int64_t page_size = 16;
    std::int64_t window = 0;
  };
  const std::vector<Shape> shapes{{.head_dim = 64},
                                  {.head_dim = 64, .group = 8},
                                  {.head_dim = 128},
                                  {.head_dim = 128, .page_size = 64},
                                  {.head_dim = 128, .page_size = 48, .window = 2100},
                                  {.head_dim = 128, .group = 8},
                                  {.head_dim = 128, .group = 16},
                                  {.head_dim = 256},
                                  {.head_dim = 256, .group = 8}};
  for (const DataType type : kCacheTypes) {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(std::string(attention::data_type_name(type)) + " " +
                   std::to_string(shape.head_dim) + " " + std::to_string(shape.group) + " " +
                   std::to_string(shape.page_size));
      Geometry geometry = heads(2 * shape.group, 2, shape.head_dim);
      geometry.window = shape.window;
      PagedCase paged(geometry, {{1, 3300}, {1, 1920}, {1, 40}},
                      {.type = type, .layout = KvLayout::kHnd, .page_size = shape.page_size});
      expect_reference(paged, device, DataType::kBf16, {.workers = 2});
    }
  }
}

TEST_F(CudaDecode, RowsThatSeeNothing_AreZero) {
  PagedCase paged(heads(8, 2, 64), {{1, 0}, {4, 2}, {1, 1}, {2, 0}}, {.type = DataType::kBf16});
  GpuCase on_gpu(paged, device);
  on_gpu.run();
  const Output got = on_gpu.output();
  expect_close(got, on_gpu.reference(), 6e-3F);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(got.lse[i], -std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < 8 * 64; ++i) EXPECT_EQ(got.o[i], 0.0F);
}

// Scores beyond f16's range and queries beyond it: bf16 queries are scaled before they become f16.
TEST_F(CudaDecode, HugeQueries_DoNotOverflowInF16) {
  for (const DataType type : {DataType::kF16, DataType::kFp8E4m3, DataType::kNvfp4}) {
    Geometry geometry = heads(4, 2, 128);
    geometry.softmax_scale = 1e-6F;
    PagedCase paged(geometry, {{1, 200}}, {.type = type});
    for (float& value : paged.q) value *= 1e6F;
    expect_reference(paged, device);
  }
}

TEST_F(CudaDecode, PeakedScores_MoveTheMaximum) {
  PagedCase paged(heads(4, 2, 128), {{1, 3000}, {1, 100}}, {.type = DataType::kF16});
  for (float& value : paged.q) value *= 30.0F;
  expect_reference(paged, device, DataType::kF16);
}

TEST_F(CudaDecode, HeadScales_MultiplyScoresAndOutputs) {
  for (const DataType type : {DataType::kFp8E4m3, DataType::kFp8E5m2}) {
    PagedCase paged(heads(8, 2, 128), {{1, 300}, {2, 50}}, {.type = type, .k_scale = 0.5F});
    GpuCase on_gpu(paged, device);
    on_gpu.set_head_scales({2.0F, 0.25F}, {0.5F, 4.0F});
    on_gpu.run();
    expect_close(on_gpu.output(), on_gpu.reference(), 6e-3F);
  }
}

TEST_F(CudaDecode, NanCodeOfE4m3_IsANanAndStaysInItsHead) {
  for (const std::uint8_t code : {std::uint8_t{0x7F}, std::uint8_t{0xFF}}) {
    PagedCase paged(heads(4, 2, 64), {{1, 40}},
                    {.type = DataType::kFp8E4m3, .layout = KvLayout::kHnd});
    GpuCase on_gpu(paged, device);
    // The first element of the first token of head 0.
    const std::int64_t at = paged.block_table[0] * on_gpu.params.v.page_stride;
    expect_ok(cuda::copy_to_device(on_gpu.params.v.data + at, &code, 1));
    on_gpu.run();
    const Output got = on_gpu.output();
    for (std::size_t head = 0; head < 4; ++head) {
      for (std::size_t d = 0; d < 64; ++d) {
        EXPECT_EQ(std::isnan(got.o[head * 64 + d]), head < 2 && d == 0) << head << " " << d;
      }
    }
  }
}

TEST_F(CudaDecode, ManyRequests_GoBeyondSixteenBitGrids) {
  std::vector<Lengths> lengths;
  for (int i = 0; i < 70'000; ++i) lengths.push_back({1, 1 + i % 3});
  PagedCase paged(heads(1, 1, 64), lengths, {.type = DataType::kBf16});
  expect_reference(paged, device);
}

TEST_F(CudaDecode, PagesBeyondTwoGib_AreAddressedWith64Bits) {
  PagedCase paged(heads(8, 2, 128), {{1, 70}, {1, 33}},
                  {.type = DataType::kBf16, .layout = KvLayout::kHnd, .page_size = 16});
  GpuCase on_gpu(paged, device);
  const std::int64_t page_bytes = on_gpu.params.k.page_stride * 2;
  const std::int64_t shift = (std::int64_t{5} << 30) / page_bytes;  // pages
  const std::int64_t pages =
      *std::max_element(paged.block_table.begin(), paged.block_table.end()) + 1;
  std::vector<cuda::Buffer> pools;
  for (attention::PagedRows* side : {&on_gpu.params.k, &on_gpu.params.v}) {
    auto pool = cuda::Buffer::allocate((shift + pages) * page_bytes);
    expect_ok(pool);
    expect_ok(cuda::copy_on_device(pool->data() + shift * page_bytes, side->data,
                                   pages * page_bytes, {}));
    side->data = pool->data();
    pools.push_back(std::move(*pool));
  }
  std::vector<std::int32_t> table = paged.block_table;
  for (std::int32_t& page : table) page += static_cast<std::int32_t>(shift);
  expect_ok(cuda::copy_to_device(const_cast<std::int32_t*>(on_gpu.params.batch.block_table),
                                 table.data(), static_cast<std::int64_t>(table.size() * 4)));
  on_gpu.run();
  expect_close(on_gpu.output(), on_gpu.reference(), 6e-3F);
}

// Few items, each shared by many blocks; and many, of which blocks take whole ones, too.
TEST_F(CudaDecode, EqualInputs_GiveEqualBits) {
  std::vector<Lengths> many;
  for (int i = 0; i < 64; ++i) many.push_back({1, 900 + 13 * i});
  for (const auto& lengths :
       {std::vector<Lengths>{{1, 3000}, {1, 17}, {1, 9000}, {1, 500}}, many}) {
    PagedCase paged(heads(32, 8, 128), lengths, {.type = DataType::kBf16});
    GpuCase on_gpu(paged, device);
    expect_equal_bits(on_gpu, [](GpuCase& one) { one.run(); });
    expect_close(on_gpu.output(), on_gpu.reference(), 6e-3F);
  }
}

// A share of several items: the part that another block merges, the end of an item that others
// began, and whole ones.
TEST_F(CudaDecode, SharesOfManyItems_AgreeWithTheReference) {
  const std::vector<Lengths> lengths{{1, 150}, {1, 310}, {1, 64}, {1, 257}, {2, 100}};
  for (const std::int64_t dim : {64, 128, 256}) {
    for (const DataType type : {DataType::kBf16, DataType::kFp8E4m3, DataType::kNvfp4}) {
      PagedCase paged(heads(8, 4, dim), lengths, {.type = type});
      for (const int workers : {2, 3, 5}) {
        expect_reference(paged, device, DataType::kBf16, {.tile_tokens = 64, .workers = workers});
      }
    }
  }
}

// Launches read the plan while the launch before them still runs: each must find its own.
TEST_F(CudaDecode, PlansInOneWorkspace_FollowEachOther) {
  std::vector<Lengths> many;
  for (int i = 0; i < 48; ++i) many.push_back({1, 700 + 29 * i});
  PagedCase few_case(heads(8, 2, 128), {{1, 20'000}, {1, 60}}, {.type = DataType::kBf16}, 1);
  PagedCase many_case(heads(8, 2, 128), many, {.type = DataType::kBf16}, 2);
  GpuCase few(few_case, device);
  GpuCase several(many_case, device);
  few.run();
  several.run();
  const auto few_bits = few.bits();
  const auto several_bits = several.bits();
  few.workspace = several.workspace;
  auto stream = cuda::Stream::create();
  expect_ok(stream);
  few.poison_output();
  several.poison_output();
  for (int i = 0; i < 50; ++i) {
    for (GpuCase* one : {&few, &several}) {
      one->enqueue(stream->view());
      expect_ok(cuda::launch_decode(one->params, device, one->workspace, stream->view()));
    }
  }
  expect_ok(stream->wait());
  EXPECT_EQ(few.bits(), few_bits);
  EXPECT_EQ(several.bits(), several_bits);
}

TEST_F(CudaDecode, CountersOfAnAbortedLaunch_AreResetByThePlan) {
  PagedCase paged(heads(8, 1, 128), {{1, 20'000}}, {.type = DataType::kBf16});
  GpuCase on_gpu(paged, device);
  on_gpu.run();
  const std::vector<std::uint16_t> first = on_gpu.bits();
  expect_ok(cuda::fill(on_gpu.workspace.data, 0x5A, on_gpu.workspace.bytes, {}));
  on_gpu.poison_output();
  on_gpu.run();
  EXPECT_EQ(on_gpu.bits(), first);
}

// One plan serves all layers of a step.
TEST_F(CudaDecode, OnePlan_ServesManyLaunches) {
  PagedCase paged(heads(8, 2, 128), {{1, 5000}, {1, 60}}, {.type = DataType::kBf16});
  GpuCase on_gpu(paged, device);
  expect_ok(cuda::plan_decode(on_gpu.params, device, on_gpu.workspace, {}));
  for (int layer = 0; layer < 3; ++layer) {
    on_gpu.poison_output();
    expect_ok(cuda::launch_decode(on_gpu.params, device, on_gpu.workspace, {}));
    expect_ok(cuda::synchronize());
    expect_close(on_gpu.output(), on_gpu.reference(), 6e-3F);
  }
}

// Who merges an item waits for blocks of lower numbers: they have been started before it.
TEST_F(CudaDecode, MoreBlocksThanTheDeviceHolds_WaitForNoneThatHasNotStarted) {
  PagedCase paged(heads(8, 2, 128), {{1, 30000}, {1, 60}, {1, 20000}},
                  {.type = DataType::kFp8E4m3});
  GpuCase on_gpu(paged, device);
  cuda::DecodeTuning tuning{.tile_tokens = 32, .workers = 5 * device.num_sms};
  const std::int64_t bytes = cuda::decode_workspace_bytes(on_gpu.params, device, tuning);
  auto memory = cuda::Buffer::allocate(bytes);
  expect_ok(memory);
  const cuda::DecodeWorkspace workspace{.data = memory->data(), .bytes = bytes};
  expect_ok(cuda::plan_decode(on_gpu.params, device, workspace, {}, tuning));
  for (int launch = 0; launch < 3; ++launch) {
    on_gpu.poison_output();
    expect_ok(cuda::launch_decode(on_gpu.params, device, workspace, {}, tuning));
    expect_ok(cuda::synchronize());
    expect_close(on_gpu.output(), on_gpu.reference(),
                 tolerance_of(DataType::kFp8E4m3, DataType::kBf16));
  }
}

TEST_F(CudaDecode, GraphReplay_FollowsChangedLengths) {
  const std::vector<Lengths> longest{{1, 4000}, {1, 900}, {1, 64}, {1, 333}};
  PagedCase paged(heads(8, 2, 128), longest, {.type = DataType::kBf16});
  GpuCase on_gpu(paged, device);
  auto stream = cuda::Stream::create();
  expect_ok(stream);
  on_gpu.run();  // loads the kernels before the capture
  auto graph = cuda::Graph::capture(stream->view(), [&]() -> Result<void> {
    KERNELPATH_CHECK_OK(cuda::plan_decode(on_gpu.params, device, on_gpu.workspace, stream->view()));
    return cuda::launch_decode(on_gpu.params, device, on_gpu.workspace, stream->view());
  });
  expect_ok(graph);
  // The last two of these are batches padded with requests of length 0.
  for (const auto& lengths : {std::vector<std::int32_t>{4000, 900, 64, 333},
                              {1, 1, 1, 1},
                              {17, 899, 0, 0},
                              {0, 0, 0, 0}}) {
    paged.seq_lens = lengths;
    on_gpu.set_lengths(lengths);
    on_gpu.poison_output();
    expect_ok(graph->replay(stream->view()));
    expect_ok(stream->wait());
    expect_close(on_gpu.output(), on_gpu.reference(), 6e-3F);
  }
}

TEST_F(CudaDecode, TwoStreams_DoNotDisturbEachOther) {
  PagedCase first_case(heads(8, 2, 128), {{1, 6000}, {1, 60}}, {.type = DataType::kBf16}, 1);
  PagedCase second_case(heads(8, 1, 64), {{1, 9000}, {2, 777}}, {.type = DataType::kFp8E4m3}, 2);
  GpuCase first(first_case, device);
  GpuCase second(second_case, device);
  first.run();
  second.run();
  const auto first_bits = first.bits();
  const auto second_bits = second.bits();
  auto one = cuda::Stream::create();
  auto other = cuda::Stream::create();
  expect_ok(one);
  expect_ok(other);
  first.poison_output();
  second.poison_output();
  for (int i = 0; i < 50; ++i) {
    first.enqueue(one->view());
    second.enqueue(other->view());
  }
  expect_ok(cuda::synchronize());
  EXPECT_EQ(first.bits(), first_bits);
  EXPECT_EQ(second.bits(), second_bits);
}

TEST_F(CudaDecode, SmallWorkspace_IsRefusedWithBothSizes) {
  PagedCase paged(heads(4, 2, 64), {{1, 20}}, {.type = DataType::kBf16});
  GpuCase on_gpu(paged, device);
  on_gpu.workspace.bytes = 100;
  const auto result = cuda::plan_decode(on_gpu.params, device, on_gpu.workspace, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("100 bytes"), std::string::npos);
}

}  // namespace
}  // namespace kernelpath::testing
