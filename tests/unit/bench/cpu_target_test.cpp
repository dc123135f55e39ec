#include "bench/cpu_target.h"

#include "bench/axes.h"
#include "bench/cpu_reads.h"
#include "bench/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

// Tiny shapes of every case on the CPU: results are right, and rows are whole. No time is judged.

namespace kernelpath::bench {
namespace {

using ::testing::HasSubstr;

constexpr int kThreads = 2;

RunOptions quick() {
  RunOptions out;
  out.measure.rule = {.min_samples = 2, .max_noise = 1e9, .min_time_s = 0, .timeout_s = 60};
  out.cache = CacheChoice::kWarm;
  return out;
}

std::vector<Shape> tiny(CaseKind kind) {
  const std::vector<std::pair<std::string, std::string>> values = {
      {"heads", "4:2"}, {"head_dim", "32"}, {"batch_size", "3"}, {"context", "40"},
      {"rows", "24"},   {"cols", "256"},    {"size", "64KiB"}};
  std::vector<AxisValues> stated;
  for (const auto& [name, value] : values) {
    stated.push_back({.axis = find_axis(name), .values = {value}, .where = name});
  }
  if (kind == CaseKind::kGqaDecode || kind == CaseKind::kPrefill || kind == CaseKind::kKvAppend) {
    stated.push_back({.axis = find_axis("kv_cache_dtype"),
                      .values = {"f32", "bf16", "f16", "fp8", "fp8_e5m2", "nvfp4"},
                      .where = ""});
  }
  return expand(kind, "", stated, {}).value();
}

class EveryCase : public ::testing::TestWithParam<kernels::cpu::Isa> {};

TEST_P(EveryCase, GivesARightResultAndAWholeRow) {
  if (!kernels::cpu::has_isa(GetParam())) GTEST_SKIP() << "not on this processor";
  const auto target = make_cpu_target({.threads = kThreads, .isa = GetParam()});
  Runner runner(*target, quick());
  for (const CaseInfo& info : case_table()) {
    if (info.kind == CaseKind::kMatrixRate) continue;  // the limit of prefill measures it
    // Which takes the reference kernels seconds.
    const bool slow = GetParam() == kernels::cpu::Isa::kReference;
    if (slow && info.kind == CaseKind::kPrefill) continue;
    for (const Shape& shape : tiny(info.kind)) {
      const std::vector<Row> rows = runner.run(shape);
      ASSERT_EQ(rows.size(), 1U);
      const Row& row = rows.front();
      ASSERT_FALSE(row.error) << key_of(shape) << ": " << row.error->text();
      ASSERT_TRUE(row.check.has_value()) << key_of(shape);
      EXPECT_TRUE(row.check->ok()) << key_of(shape) << ": " << row.check->error;
      EXPECT_TRUE(row.valid()) << key_of(shape) << ": " << row.problems.front();
      EXPECT_GE(row.measured.samples.size(), 2U);
      EXPECT_GT(row.measured.summary.median, 0);
      EXPECT_GT(row.work.bytes, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(CpuTarget, EveryCase, ::testing::ValuesIn(kernels::cpu::kIsas),
                         [](const auto& test) {
                           return std::string(kernels::cpu::isa_name(test.param));
                         });

TEST(CpuTarget, Limits_AreWhatBoundsTheCase) {
  const auto target = make_cpu_target({.threads = 1, .isa = kernels::cpu::Isa::kReference});
  Runner runner(*target, quick());
  const auto limit_of = [&](CaseKind kind) { return runner.run(tiny(kind).front()).front(); };
  const Row decode = limit_of(CaseKind::kGqaDecode);
  EXPECT_EQ(decode.limit, LimitKind::kGatherRead);
  EXPECT_GT(decode.of_limit(), 0);
  EXPECT_NEAR(decode.t0_s() + decode.work.bytes / decode.limit_rate, decode.measured.summary.median,
              1e-12);
  EXPECT_EQ(limit_of(CaseKind::kGemv).limit, LimitKind::kLinearRead);
  EXPECT_EQ(limit_of(CaseKind::kKvAppend).limit, LimitKind::kCopy);
  EXPECT_EQ(limit_of(CaseKind::kReadCeiling).limit, LimitKind::kNone);
}

TEST(CpuTarget, Cold_RotatesOverCopies) {
  if (last_cache_bytes() == 0) GTEST_SKIP() << "the size of the cache is not known";
  const auto target = make_cpu_target({.threads = 1, .isa = kernels::cpu::Isa::kReference});
  RunOptions options = quick();
  options.cache = CacheChoice::kCold;
  Runner runner(*target, options);
  const Row row = runner.run(tiny(CaseKind::kReadCeiling).front()).front();
  ASSERT_FALSE(row.error);
  EXPECT_TRUE(row.rotated);
  EXPECT_TRUE(row.check->ok());
}

TEST(CpuTarget, Activations_AreF32) {
  const auto target = make_cpu_target({.threads = 1, .isa = kernels::cpu::Isa::kReference});
  Shape shape = tiny(CaseKind::kGqaDecode).front();
  shape.dtype = attention::DataType::kBf16;
  const auto job = target->prepare(shape, false);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(job.error().message, HasSubstr("f32"));
}

TEST(CpuTarget, OneLaunch_IsMarked) {
  const auto target = make_cpu_target({.threads = 1, .isa = kernels::cpu::Isa::kReference});
  RunOptions options = quick();
  options.measure.one_launch = true;
  Runner runner(*target, options);
  const Row row = runner.run(tiny(CaseKind::kGqaDecode).front()).front();
  EXPECT_EQ(row.measured.samples.size(), 1U);
  EXPECT_FALSE(row.check.has_value());
  EXPECT_FALSE(row.valid());
}

TEST(Row, NoiseAndWrongResults_AreProblems) {
  const auto target = make_cpu_target({.threads = 1, .isa = kernels::cpu::Isa::kReference});
  RunOptions options = quick();
  options.measure.rule.max_noise = 0;
  Runner runner(*target, options);
  const Row row = runner.run(tiny(CaseKind::kCopy).front()).front();
  // Samples of a real clock are never all equal; were they, there would be no problem to report.
  EXPECT_EQ(row.valid(), row.measured.summary.noise == 0);
}

TEST(ReadGather, EveryRun_IsReadByOneThread) {
  kernels::cpu::TeamPool pool(3);
  std::vector<std::byte> data(64 * 100);
  fill_random({}, data, kAnyBits, 1);
  const CpuGather gather{.data = data, .table = random_order(100, 2), .run_bytes = 64};
  std::uint64_t expected = 0;
  for (std::size_t at = 0; at < data.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data() + at, sizeof(word));
    expected ^= word;
  }
  std::atomic<std::uint64_t> sum{0};
  pool.run([&](const kernels::cpu::Team& team) { sum.fetch_xor(read_gather(team, gather)); });
  EXPECT_EQ(sum, expected);
}

}  // namespace
}  // namespace kernelpath::bench
