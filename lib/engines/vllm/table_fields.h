#pragma once

#include "engines/json_fields.h"
#include "engines/vllm/backend_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Reading the extracted tables: values that several tables share.
namespace kernelpath::engines::vllm {

// A list of integers. Error if the member is missing or holds anything else.
Result<std::vector<std::int64_t>> read_integers(const JsonFields& row, std::string_view name);

// [["8.0", null], …] → ranges. Error as above.
Result<std::vector<CapabilityRange>> read_capabilities(const JsonFields& row,
                                                       std::string_view name);

// The name of a rule where the member is {"rule": NAME}; empty where it is a value.
Result<std::string> read_rule(const JsonFields& row, std::string_view name);

// An error that says which rule this build lacks.
Error unknown_rule(const JsonFields& row, std::string_view name, std::string_view rule);

}  // namespace kernelpath::engines::vllm
