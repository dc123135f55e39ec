#include "cli/bench_document.h"

#include <gmock/gmock.h>

namespace kernelpath::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

BenchDocument decode_of(double limit_rate, double own_limit_rate) {
  bench::Row row;
  row.shape.kind = bench::CaseKind::kGqaDecode;
  row.shape.batch = 64;
  row.shape.contexts = {4096};
  row.kernel = "sm80_gqa";
  row.work.bytes = 1e9;
  row.measured.summary.median = 250e-6;  // 4 TB/s
  row.limit = bench::LimitKind::kGatherRead;
  row.limit_rate = limit_rate;
  row.own_limit_rate = own_limit_rate;
  BenchDocument out;
  out.rows.push_back(row);
  return out;
}

TEST(BenchText, LimitOfAnotherSize_HasTheShareOfTheOwnSizeBesideIt) {
  const std::string text = bench_markdown(decode_of(5e12, 4.2e12));
  EXPECT_THAT(text, HasSubstr("of limit | of own size | t0"));
  EXPECT_THAT(text, HasSubstr("80.0 % | 95.2 % | 50.0 us"));
}

TEST(BenchText, LimitOfTheSameSize_IsOneShare) {
  const std::string text = bench_markdown(decode_of(5e12, 5e12));
  EXPECT_THAT(text, HasSubstr("80.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("own size")));
}

}  // namespace
}  // namespace kernelpath::cli
