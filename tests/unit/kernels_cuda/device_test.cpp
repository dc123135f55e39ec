#include "kernels/cuda/device.h"

#include "gpu_case.h"

#include <cstddef>
#include <vector>

namespace kernelpath::testing {
namespace {

namespace cuda = kernels::cuda;

class CudaDevice : public GpuTest {};

// The source is pageable memory and the reader another stream, which waits for no copy of its own
// accord.
TEST_F(CudaDevice, CopyToDevice_IsThereForEveryStream) {
  constexpr std::int64_t kBytes = std::int64_t{96} << 20;
  auto stream = cuda::Stream::create();
  expect_ok(stream);
  auto from = cuda::Buffer::allocate(kBytes);
  auto to = cuda::Buffer::allocate(kBytes);
  expect_ok(from);
  expect_ok(to);
  for (int round = 1; round <= 8; ++round) {
    const std::vector<std::byte> values(static_cast<std::size_t>(kBytes), std::byte(round));
    expect_ok(cuda::copy_to_device(from->data(), values.data(), kBytes));
    expect_ok(cuda::copy_on_device(to->data(), from->data(), kBytes, stream->view()));
    expect_ok(stream->wait());
    std::byte last{};
    expect_ok(cuda::copy_to_host(&last, to->data() + kBytes - 1, 1));
    ASSERT_EQ(last, std::byte(round));
  }
}

}  // namespace
}  // namespace kernelpath::testing
