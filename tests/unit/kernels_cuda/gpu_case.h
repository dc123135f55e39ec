#pragma once

#include "kernels/cuda/device.h"
#include "kernels/cuda/gqa_decode.h"
#include "kernels/cuda/prefill.h"
#include "paged_case.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace kernelpath::testing {

// Asserts that a Result holds.
template <class T>
void expect_ok(const Result<T>& result) {
  ASSERT_TRUE(result.has_value()) << result.error().text();
}

// Skips a test, with the reason printed, where there is no device.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override;
  // A copy on the device, which lives as long as the test.
  template <class T>
  T* upload(const std::vector<T>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
    auto buffer = kernels::cuda::Buffer::allocate(bytes);
    expect_ok(buffer);
    expect_ok(kernels::cuda::copy_to_device(buffer->data(), values.data(), bytes));
    buffers_.push_back(std::move(*buffer));
    return reinterpret_cast<T*>(buffers_.back().data());
  }
  kernels::cuda::DeviceInfo device;

 private:
  std::vector<kernels::cuda::Buffer> buffers_;
};

// A case on the device: its queries rounded to `query_type`, its pages, tables and lengths copied.
// Entries of block tables beyond a request's pages name no page.
class GpuCase {
 public:
  GpuCase(PagedCase& paged, const kernels::cuda::DeviceInfo& device,
          attention::DataType query_type = attention::DataType::kBf16);

  // Plans and launches on the default stream.
  void run(const kernels::cuda::DecodeTuning& tuning = {});
  // By the prefill kernel.
  void run_prefill();
  // run() on a stream, without waiting.
  void enqueue(kernels::cuda::StreamView stream, const kernels::cuda::DecodeTuning& tuning = {});
  [[nodiscard]] Output output() const;
  // The bits of the output rows.
  [[nodiscard]] std::vector<std::uint16_t> bits() const;
  // By the CPU's float64 reference, from the rounded queries and the stored cache.
  [[nodiscard]] Output reference() const;
  // Multiplies the scales of K and V by one for each KV head; reference() follows.
  void set_head_scales(const std::vector<float>& k, const std::vector<float>& v);
  // Writes other lengths to the device; what was captured sees them.
  void set_lengths(const std::vector<std::int32_t>& seq_lens);
  void poison_output();

  kernels::cuda::DecodeParams params;
  kernels::cuda::DecodeWorkspace workspace;

 private:
  template <class T>
  T* upload(const std::vector<T>& values);

  PagedCase& paged_;
  const kernels::cuda::DeviceInfo& device_;
  std::vector<kernels::cuda::Buffer> buffers_;
  std::vector<float> k_head_scales_, v_head_scales_;
  std::int64_t rows_ = 0;
  void* o_ = nullptr;
  float* lse_ = nullptr;
};

// What outputs of these types may differ by: |got - wanted| <= tolerance * (1 + |wanted|).
float tolerance_of(attention::DataType cache, attention::DataType query);
void expect_close(const Output& got, const Output& wanted, float tolerance);
// Runs it again and again: every output has the bits of the first.
void expect_equal_bits(GpuCase& on_gpu, void (*run)(GpuCase&));
// Runs the case and compares with the reference.
void expect_reference(PagedCase& paged, const kernels::cuda::DeviceInfo& device,
                      attention::DataType query_type = attention::DataType::kBf16,
                      const kernels::cuda::DecodeTuning& tuning = {});

}  // namespace kernelpath::testing
