#pragma once

#include "engines/resolution.h"
#include "json/writer.h"
#include "report/blocks.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::report {

// The memory of one rank: a sentence or two of one engine, a table of several, with each engine's
// notes.
void append_memory(std::vector<Block>& out, const InputAnswer& answer);

// What makes the sizes of each engine differ from the plain ones, figure by figure. Nothing where
// none differs.
void append_memory_differences(std::vector<Block>& out, const std::vector<EngineAnswer>& engines);

// "accounts" of an engine's memory.
void write_accounts(json::Writer& w, const engines::Memory& memory);

// What two resolutions of one model account for differently.
struct AccountDifference {
  std::string figure;
  std::string cause;  // "plain" for the plain figure itself
  std::int64_t from_bytes = 0;
  std::int64_t to_bytes = 0;
};
std::vector<AccountDifference> account_differences(const engines::Memory& from,
                                                   const engines::Memory& to);

// "kv_bytes_per_token" → "KV per token".
std::string_view figure_name(std::string_view figure);
// "+512 B", "-1.5 GiB".
std::string signed_bytes(std::int64_t bytes);

}  // namespace kernelpath::report
