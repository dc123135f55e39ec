#include "engines/vllm/contract.h"

#include "engines/vllm/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

using ::testing::HasSubstr;

// The cell of a backend's row; fails the test where there is none.
std::string cell(std::string_view version, std::string_view backend, std::string_view column) {
  const std::vector<TableRow> rows = contract_rows(built_in_tables(version));
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const TableRow& known) { return known.name == backend; });
  if (row == rows.end()) {
    ADD_FAILURE() << "no row " << backend;
    return {};
  }
  for (const auto& [name, value] : row->columns) {
    if (name == column) return value;
  }
  ADD_FAILURE() << backend << " has no column " << column;
  return {};
}

TEST(Contract, EveryMemberWithAClass_HasAWholeRow) {
  for (const std::string& version : built_in_versions()) {
    for (const TableRow& row : contract_rows(built_in_tables(version))) {
      const bool placeholder = row.columns.front().second == "-";
      EXPECT_EQ(row.columns.size() > 15, !placeholder) << version << " " << row.name;
    }
  }
}

TEST(Contract, KvDtypes_ArePerDeviceGeneration) {
  EXPECT_EQ(cell("0.25.1", "FLASH_ATTN", "KV dtypes"),
            "8.0 8.6 8.7 8.9 10.0 10.3 11.0 12.0 12.1: auto float16 bfloat16; "
            "9.0: auto float16 bfloat16 fp8 fp8_e4m3");
}

TEST(Contract, Capabilities_AreThoseOfTheClass) {
  EXPECT_THAT(cell("0.25.1", "FLASH_ATTN_MLA", "devices"), ::testing::Eq("9.0"));
  EXPECT_THAT(cell("0.25.1", "CUTLASS_MLA", "devices"), ::testing::Eq("10.0 10.3"));
}

TEST(Contract, ShapePerLayout_FollowsTheStrideOrder) {
  EXPECT_THAT(cell("0.25.1", "FLASH_ATTN", "KV in memory"),
              HasSubstr("HND: [num_blocks, 2, num_kv_heads, block_size, head_size]"));
  EXPECT_THAT(cell("0.33.0", "FLASH_ATTN", "KV in memory"),
              HasSubstr("LBNHC: [num_layers, num_blocks, block_size, num_kv_heads, "));
}

TEST(Contract, ShapeByKvDtype_IsListed) {
  EXPECT_THAT(cell("0.25.1", "FLASHMLA_SPARSE", "KV shape"),
              HasSubstr("fp8_ds_mla: [num_blocks, block_size, 656]"));
  EXPECT_THAT(cell("0.33.0", "FLASHINFER", "KV shape"), HasSubstr("2 * num_kv_heads"));
}

TEST(Contract, BlockSizes_SayMultiplesAndExactOnes) {
  EXPECT_EQ(cell("0.25.1", "FLASH_ATTN", "block sizes"), "x16");
  EXPECT_EQ(cell("0.25.1", "FLASHMLA", "block sizes"), "64");
}

TEST(Contract, LseBase_IsKnownWhereItIsReturned) {
  EXPECT_EQ(cell("0.25.1", "FLASH_ATTN", "LSE base"), "e");
  EXPECT_EQ(cell("0.25.1", "FLASHINFER_MLA", "LSE base"), "2");
  EXPECT_EQ(cell("0.33.0", "FLASHINFER_MLA", "LSE base"), "e");
  EXPECT_EQ(cell("0.25.1", "TRITON_ATTN", "LSE base"), "-");
}

TEST(Contract, GraphLevel_IsPerDeviceGeneration) {
  EXPECT_EQ(cell("0.25.1", "FLASH_ATTN", "cuda graphs"),
            "8.0 8.6 8.7 8.9 10.0 10.3 11.0 12.0 12.1: UNIFORM_BATCH; 9.0: ALWAYS");
  EXPECT_THAT(cell("0.25.1", "FLASHINFER", "cuda graphs"), HasSubstr("10.0 10.3: UNIFORM_BATCH"));
  EXPECT_EQ(cell("0.33.0", "FLASHINFER_MLA", "cuda graphs"), "ALWAYS");
}

TEST(Priorities, EveryOrder_HoldsForSomething) {
  for (const TableRow& row : priority_rows(built_in_tables("0.33.0"))) {
    EXPECT_FALSE(row.columns.at(1).second.empty()) << row.name;
  }
}

}  // namespace
}  // namespace kernelpath::engines::vllm
