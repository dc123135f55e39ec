#include "attention/layer_request.h"
#include "claims.h"
#include "gpu_case.h"
#include "kernels/cuda/call.h"
#include "kernels/cuda/capabilities.h"
#include "kernels/cuda/prefill.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The kernels' table, the list of instantiations that CMake compiles and the checks agree; and on a
// GPU everything that the table claims runs.
namespace kernelpath::testing {
namespace {

namespace cuda = kernels::cuda;
using attention::DataType;
using attention::Feature;
using ::testing::HasSubstr;

cuda::DeviceInfo hopper() {
  cuda::DeviceInfo device;
  device.name = "NVIDIA H200";
  device.sm = 90;
  device.num_sms = 132;
  device.shared_bytes_per_block = std::int64_t{227} * 1024;
  return device;
}

struct Kernel {
  const cuda::KernelCapabilities* table = nullptr;
  Result<void> (*check)(const cuda::DecodeParams&, const cuda::DeviceInfo&) = nullptr;
  std::string (*name)(const cuda::DecodeParams&) = nullptr;
};
const std::array kKernels{
    Kernel{&cuda::kDecodeCapabilities, &cuda::check_decode, &cuda::decode_kernel_name},
    Kernel{&cuda::kPrefillCapabilities, &cuda::check_prefill, &cuda::prefill_kernel_name}};

std::string refusal(const Kernel& kernel, const cuda::DecodeParams& params,
                    const cuda::DeviceInfo& device = hopper()) {
  const auto result = kernel.check(params, device);
  return result ? std::string() : result.error().message;
}

// Where this build has no code for sm_90a, check_prefill() refuses all.
bool is_built(const Kernel& kernel) {
#ifdef KERNELPATH_HAVE_SM90A
  static_cast<void>(kernel);
  return true;
#else
  return kernel.table != &cuda::kPrefillCapabilities;
#endif
}

Call plain_call(DataType type = DataType::kBf16) {
  return {.kv_type = type,
          .geometry = {.num_heads = 4, .num_kv_heads = 2, .head_dim = 64, .v_head_dim = 64},
          .page_size = 16,
          .queries = 1};
}

// "decode kBf16 64 1" of CMakeLists.txt as the library names it.
std::string library_name(const std::string& listed) {
  const std::vector<std::pair<std::string, DataType>> types{{"kBf16", DataType::kBf16},
                                                            {"kF16", DataType::kF16},
                                                            {"kFp8E4m3", DataType::kFp8E4m3},
                                                            {"kFp8E5m2", DataType::kFp8E5m2},
                                                            {"kNvfp4", DataType::kNvfp4}};
  std::istringstream words(listed);
  std::string kernel;
  std::string type;
  int first = 0;
  int second = 0;
  words >> kernel >> type >> first >> second;
  const auto known = std::ranges::find(types, type, &std::pair<std::string, DataType>::first);
  if (known == types.end()) return "unknown type " + type;
  const std::string_view name = attention::data_type_name(known->second);
  // Columns of nvfp4 are four query rows, each twice.
  const int rows = second * (known->second == DataType::kNvfp4 ? 4 : 8);
  return kernel == "decode" ? fmt::format("sm80_gqa<{}, {}, {}>", name, first, rows)
                            : fmt::format("sm90_prefill<{}, {}, {}>", name, first, second);
}

TEST(CudaCapabilities, Instantiations_AreThoseThatCMakeCompiles) {
  std::set<std::string> compiled;
  std::istringstream list(KERNELPATH_CUDA_INSTANTIATIONS);
  for (std::string one; std::getline(list, one, ',');) compiled.insert(library_name(one));
  std::set<std::string> listed;
  for (const std::string& name : cuda::decode_kernel_names()) listed.insert(name);
  for (const std::string& name : cuda::prefill_kernel_names()) listed.insert(name);
  EXPECT_EQ(listed, compiled);
}

void expect_instantiations(const Kernel& kernel, DataType type, std::int64_t k) {
  for (std::int64_t v = 1; v <= 300; ++v) {
    if (!kernel.table->has_head_dim(type, v)) continue;
    Call call = plain_call(type);
    call.geometry.head_dim = k;
    call.geometry.v_head_dim = v;
    ASSERT_EQ(refusal(kernel, call.params()), "") << call.text();
    ASSERT_NE(kernel.name(call.params()), "none") << call.text();
  }
}

TEST(CudaCapabilities, EveryHeadSizeThatIsClaimed_HasAnInstantiation) {
  for (const Kernel& kernel : kKernels) {
    if (!is_built(kernel)) continue;
    for (const DataType type : attention::kDataTypes) {
      if (!kernel.table->row.kv_types.has(type)) continue;
      for (std::int64_t k = 1; k <= 300; ++k) {
        if (kernel.table->has_head_dim(type, k)) expect_instantiations(kernel, type, k);
      }
    }
  }
}

TEST(CudaCapabilities, EveryClaim_IsAccepted) {
  for (const Kernel& kernel : kKernels) {
    if (!is_built(kernel)) continue;
    const ClaimedValues values = claimed_values(*kernel.table);
    for (const Choice& choice : covering_choices(*kernel.table, values)) {
      const Call call = call_of(values, choice);
      EXPECT_EQ(refusal(kernel, call.params()), "") << kernel.table->name << ": " << call.text();
    }
  }
}

TEST(CudaCapabilities, CoveringCalls_HoldEveryPairOfClaimedValues) {
  const cuda::KernelCapabilities& kernel = cuda::kDecodeCapabilities;
  const ClaimedValues values = claimed_values(kernel);
  const auto counts = value_counts(values);
  const std::vector<Choice> choices = covering_choices(kernel, values);
  for (std::size_t a = 0; a < kFactors; ++a) {
    for (std::size_t b = a + 1; b < kFactors; ++b) {
      std::set<std::pair<std::size_t, std::size_t>> held;
      for (const Choice& choice : choices) held.emplace(choice[a], choice[b]);
      std::size_t claimed = 0;
      for (std::size_t i = 0; i < counts[a] * counts[b]; ++i) {
        claimed += goes_together(kernel, values, {static_cast<Factor>(a), i / counts[b]},
                                 {static_cast<Factor>(b), i % counts[b]})
                       ? 1U
                       : 0U;
      }
      EXPECT_EQ(held.size(), claimed) << a << " and " << b;
    }
  }
}

// A change of a plain call that no kernel claims, and what the refusal says is supported.
struct Unclaimed {
  std::string_view what;
  void (*change)(cuda::DecodeParams&);
  std::string_view reason;
};
constexpr std::array kUnclaimed{
    Unclaimed{"float32 cache", [](auto& p) { p.k.type = p.v.type = DataType::kF32; },
              "bfloat16, float16, fp8_e4m3, fp8_e5m2 and nvfp4 are supported"},
    Unclaimed{"two cache types", [](auto& p) { p.v.type = DataType::kF16; }, "of one type"},
    Unclaimed{"float32 queries", [](auto& p) { p.query_type = DataType::kF32; },
              "queries are float32; bfloat16 and float16 are supported"},
    Unclaimed{"fp8 queries", [](auto& p) { p.query_type = DataType::kFp8E4m3; },
              "queries are fp8_e4m3"},
    Unclaimed{"head size 8", [](auto& p) { p.geometry.head_dim = 8; }, "multiples of 16 from 16"},
    Unclaimed{"head size 72", [](auto& p) { p.geometry.head_dim = 72; },
              "the head size of K is 72; multiples of 16 from 16 to 256 are supported"},
    Unclaimed{"head size 272", [](auto& p) { p.geometry.v_head_dim = 272; },
              "the head size of V is 272"},
    Unclaimed{"head size 0", [](auto& p) { p.geometry.v_head_dim = 0; }, "the head size of V is 0"},
    Unclaimed{"a latent's head size", [](auto& p) { p.geometry.head_dim = 576; }, "to 256"},
    Unclaimed{"no page", [](auto& p) { p.batch.page_size = 0; }, "1 or more is supported"},
    Unclaimed{"a page beyond 32 bits", [](auto& p) { p.batch.page_size = std::int64_t{1} << 31; },
              "the page size is"},
    Unclaimed{"no query", [](auto& p) { p.max_queries = 0; }, "1 and more are supported"},
    Unclaimed{"heads that do not divide", [](auto& p) { p.geometry.num_heads = 5; },
              "5 query heads do not divide among 2 KV heads"},
    Unclaimed{"no KV heads", [](auto& p) { p.geometry.num_kv_heads = 0; }, "do not divide"},
    Unclaimed{"a stride of part of 16 bytes", [](auto& p) { p.k.token_stride = 65; },
              "multiples of 8 are supported for bfloat16"},
    Unclaimed{"a stride beyond 2 GiB", [](auto& p) { p.v.page_stride = std::int64_t{1} << 30; },
              "up to 2 GiB"},
    Unclaimed{"a negative stride", [](auto& p) { p.v.page_stride = -64; }, "up to 2 GiB"},
    Unclaimed{"a negative window", [](auto& p) { p.geometry.window = -1; }, "window -1"},
    Unclaimed{"a chunk beyond 32 bits", [](auto& p) { p.geometry.chunk = std::int64_t{1} << 31; },
              "and chunk 2147483648"},
};

TEST(CudaCapabilities, WhatIsNotClaimed_IsRefusedWithWhatIs) {
  for (const Kernel& kernel : kKernels) {
    for (const Unclaimed& unclaimed : kUnclaimed) {
      SCOPED_TRACE(std::string(kernel.table->name) + ": " + std::string(unclaimed.what));
      cuda::DecodeParams params = plain_call().params();
      unclaimed.change(params);
      EXPECT_THAT(refusal(kernel, params), HasSubstr(std::string(unclaimed.reason)));
    }
  }
}

TEST(CudaCapabilities, WhatBlockScaledCachesLack_IsRefused) {
  for (const Kernel& kernel : kKernels) {
    cuda::DecodeParams params = plain_call(DataType::kNvfp4).params();
    params.geometry.head_dim = 80;
    EXPECT_THAT(refusal(kernel, params),
                HasSubstr("80; multiples of 64 from 64 to 256 are supported for nvfp4"));
    params = plain_call(DataType::kNvfp4).params();
    params.k.token_stride = 96;
    EXPECT_THAT(refusal(kernel, params), HasSubstr("multiples of 64 are supported for nvfp4"));
    params = plain_call(DataType::kNvfp4).params();
    params.v.block_scales = nullptr;
    EXPECT_THAT(refusal(kernel, params), HasSubstr("V has no block scales"));
  }
}

TEST(CudaCapabilities, OtherDevices_AreRefused) {
  const auto on = [](const Kernel& kernel, std::int32_t sm) {
    cuda::DeviceInfo device = hopper();
    device.sm = sm;
    return refusal(kernel, plain_call().params(), device);
  };
  EXPECT_THAT(on(kKernels[0], 75), HasSubstr("the device is sm_75; sm_80 and newer are supported"));
  EXPECT_EQ(on(kKernels[0], 80), "");
  EXPECT_EQ(on(kKernels[0], 120), "");
  EXPECT_THAT(on(kKernels[1], 80), HasSubstr("the device is sm_80; sm_90 is supported"));
  EXPECT_THAT(on(kKernels[1], 100), HasSubstr("sm_90 is supported"));
}

TEST(CudaCapabilities, FewerFeatures_AreRefusedByName) {
  cuda::DecodeParams params = plain_call().params();
  static float number = 0.0F;
  params.sinks = &number;
  params.lse.data = &number;
  params.geometry.window = 4;
  params.geometry.chunk = 8;
  params.geometry.softcap = 1.0F;
  params.geometry.causal = false;
  params.geometry.v_head_dim = 32;
  const attention::FeatureSet asked = cuda::features_of(params);
  EXPECT_EQ(asked, cuda::kDecodeCapabilities.row.features);
  for (const Feature feature : attention::kFeatures) {
    if (!asked.has(feature)) continue;
    cuda::KernelCapabilities less = cuda::kDecodeCapabilities;
    less.row.features.set(feature, false);
    cuda::Findings findings("test");
    cuda::require_claimed(findings, less, params, hopper());
    const auto result = findings.result();
    ASSERT_FALSE(result.has_value()) << attention::feature_name(feature);
    EXPECT_THAT(result.error().message,
                HasSubstr(std::string(attention::feature_name(feature)) + " is not supported"));
  }
}

// The rows speak lib/attention's language: its rules give the same answers.
TEST(CudaCapabilities, RulesOfTheBackends_AgreeWithTheChecks) {
  for (const Kernel& kernel : kKernels) {
    if (!is_built(kernel)) continue;
    for (const std::int64_t dim : {8, 16, 64, 72, 80, 256, 272}) {
      for (const DataType type : {DataType::kF32, DataType::kBf16, DataType::kFp8E5m2}) {
        Call call = plain_call(type);
        call.geometry.head_dim = call.geometry.v_head_dim = dim;
        const attention::LayerRequest request{.platform = hardware::Platform::kCuda,
                                              .geometry = call.geometry,
                                              .kv_type = type,
                                              .layout = call.layout,
                                              .page_size = call.page_size,
                                              .lse_base = attention::LogBase::kE,
                                              .graph_level = attention::GraphLevel::kAlways};
        EXPECT_EQ(attention::refusals(kernel.table->row, request).empty(),
                  refusal(kernel, call.params()).empty())
            << call.text();
      }
    }
  }
}

TEST(CudaCapabilities, NoConfiguration_ResolvesToThem) {
  for (const attention::BackendRow& row : attention::backend_table()) {
    EXPECT_TRUE(row.platform != hardware::Platform::kCuda || !row.missing.empty())
        << "llm-run does not run on CUDA";
  }
}

// Every claim on the GPU, against the CPU's float64 reference.
class CudaCoverage : public GpuTest {
 protected:
  void walk(const Kernel& kernel, void (*run)(GpuCase&)) {
    if (!kernel.table->has_device(device.sm)) {
      GTEST_SKIP() << "the device is sm_" << device.sm;
    }
    const ClaimedValues values = claimed_values(*kernel.table);
    unsigned seed = 0;
    for (const Choice& choice : covering_choices(*kernel.table, values)) {
      const Call call = call_of(values, choice);
      SCOPED_TRACE(call.text());
      walk_one(call, ++seed, run);
      if (HasFatalFailure()) return;
    }
  }

 private:
  void walk_one(const Call& call, unsigned seed, void (*run)(GpuCase&)) {
    PagedCase paged(call.geometry,
                    {{call.queries, call.queries + 150}, {1, 33}, {call.queries, call.queries}},
                    {.type = call.kv_type,
                     .layout = call.layout,
                     .page_size = call.page_size,
                     .k_scale = 0.75F,
                     .v_scale = 0.5F},
                    seed);
    for (std::int64_t h = 0; call.sinks && h < call.geometry.num_heads; ++h) {
      paged.sinks.push_back(static_cast<float>(h % 5) - 2.0F);
    }
    GpuCase on_gpu(paged, device, call.query_type);
    if (!call.lse) on_gpu.params.lse.data = nullptr;
    if (call.head_scales) on_gpu.set_head_scales({2.0F, 0.5F}, {0.25F, 1.0F});
    run(on_gpu);
    Output got = on_gpu.output();
    Output wanted = on_gpu.reference();
    if (!call.lse) {
      got.lse.clear();
      wanted.lse.clear();
    }
    expect_close(got, wanted, tolerance_of(call.kv_type, call.query_type));
  }
};

TEST_F(CudaCoverage, EveryClaimOfDecode_AgreesWithTheReference) {
  walk(kKernels[0], [](GpuCase& on_gpu) { on_gpu.run(); });
}
TEST_F(CudaCoverage, EveryClaimOfPrefill_AgreesWithTheReference) {
  walk(kKernels[1], [](GpuCase& on_gpu) { on_gpu.run_prefill(); });
}

}  // namespace
}  // namespace kernelpath::testing
