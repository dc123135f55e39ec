#include "kernels/cuda/ceilings.h"

#include "gpu_case.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace kernelpath::testing {
namespace {

namespace cuda = kernels::cuda;

class CudaCeilings : public GpuTest {};

// A value at each place in turn would be slow: a buffer that folds to the kernel's mark when, and
// only when, its last 16 bytes are read shows that the end is reached.
TEST_F(CudaCeilings, Reads_ReachTheLastBytes) {
  for (const std::int64_t bytes : {16, 4096, 100'000 * 16}) {
    std::vector<std::uint32_t> values(static_cast<std::size_t>(bytes / 4), 0);
    values.back() = 0x5EED5EEDU;
    auto data = cuda::Buffer::allocate(bytes);
    auto sink = cuda::Buffer::allocate(16);
    expect_ok(data);
    expect_ok(sink);
    const auto seen = [&] {
      std::uint32_t value = 0;
      expect_ok(cuda::synchronize());
      expect_ok(cuda::copy_to_host(&value, sink->data(), 4));
      expect_ok(cuda::fill(sink->data(), 0, 16, {}));
      return value;
    };
    auto* const to = reinterpret_cast<std::uint32_t*>(sink->data());
    expect_ok(cuda::copy_to_device(data->data(), values.data(), bytes));
    expect_ok(cuda::fill(sink->data(), 0, 16, {}));
    expect_ok(cuda::launch_linear_read(data->data(), bytes, to, {}));
    EXPECT_EQ(seen(), 0x5EED5EEDU);
    for (const std::int64_t run : {16, 256, 4096}) {
      if (bytes % run != 0) continue;
      std::vector<std::int32_t> table(static_cast<std::size_t>(bytes / run));
      std::iota(table.begin(), table.end(), 0);
      std::shuffle(table.begin(), table.end(), std::mt19937(3));
      auto runs = cuda::Buffer::allocate(static_cast<std::int64_t>(table.size() * 4));
      expect_ok(runs);
      expect_ok(cuda::copy_to_device(runs->data(), table.data(), runs->bytes()));
      expect_ok(cuda::launch_gather_read({.data = data->data(),
                                          .table = reinterpret_cast<std::int32_t*>(runs->data()),
                                          .num_runs = bytes / run,
                                          .run_bytes = run},
                                         to, {}));
      EXPECT_EQ(seen(), 0x5EED5EEDU) << bytes << " in runs of " << run;
    }
  }
}

TEST_F(CudaCeilings, OddSizes_AreRefused) {
  EXPECT_FALSE(cuda::launch_linear_read(nullptr, 20, nullptr, {}).has_value());
  EXPECT_FALSE(cuda::launch_gather_read({.run_bytes = 48}, nullptr, {}).has_value());
}

}  // namespace
}  // namespace kernelpath::testing
