#include "kernels/cpu/executor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace kernelpath::kernels {
namespace {

// Leaves this process so many bytes of addresses beside those that it has.
bool leave_addresses(std::int64_t bytes) {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  if (!(file >> pages)) return false;
  const auto limit = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + bytes);
  const rlimit limits{.rlim_cur = limit, .rlim_max = limit};
  return setrlimit(RLIMIT_AS, &limits) == 0;
}

// In a process of its own: 0 where an executor of one thread says what it lacks.
[[noreturn]] void make_executor_without_memory() {
  if (!leave_addresses(std::int64_t{1} << 20)) std::exit(1);
  const cpu::CpuExecutor executor(1);
  const Result<void> ready = executor.ready();
  if (ready || ready.error().code != ErrorCode::kResource) std::exit(2);
  const std::string& message = ready.error().message;
  std::exit(message.find("2 MiB of what the matrix kernels") != std::string::npos ? 0 : 3);
}

TEST(CpuExecutor, WithItsMemory_IsReady) {
  cpu::CpuExecutor executor(3);
  EXPECT_TRUE(executor.ready());
  EXPECT_EQ(cpu::CpuExecutor::scratch_bytes(executor.threads()), 3 * cpu::kMatmulScratchBytes);
}

TEST(CpuExecutor, WithoutMemoryForItsKernels_SaysHowMuch) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take addresses themselves";
#else
  EXPECT_EXIT(make_executor_without_memory(), testing::ExitedWithCode(0), "");
#endif
}

// Each run gives the kernels the memory of its executor, not of one that is gone.
TEST(CpuExecutor, AfterAnotherOne_UsesItsOwnMemory) {
  std::byte* first = nullptr;
  {
    cpu::CpuExecutor executor(1);
    executor.run([&](Ops& /*ops*/) { first = cpu::matmul_scratch(1); });
    EXPECT_NE(first, nullptr);
    cpu::CpuExecutor other(1);
    std::byte* second = nullptr;
    other.run([&](Ops& /*ops*/) { second = cpu::matmul_scratch(1); });
    EXPECT_NE(second, first);
    executor.run([&](Ops& /*ops*/) { EXPECT_EQ(cpu::matmul_scratch(1), first); });
  }
}

}  // namespace
}  // namespace kernelpath::kernels
