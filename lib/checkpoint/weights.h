#pragma once

#include "base/result.h"
#include "checkpoint/safetensors.h"
#include "json/document.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::checkpoint {

inline constexpr std::size_t kMaxIndexBytes = std::size_t{256} << 20;
inline constexpr std::string_view kIndexName = "model.safetensors.index.json";
inline constexpr std::string_view kSingleName = "model.safetensors";

// model.safetensors.index.json: which shard holds which tensor.
struct Index {
  std::vector<std::string> shards;                              // in order of first mention
  std::vector<std::pair<std::string, std::size_t>> weight_map;  // tensor → index into `shards`
  std::optional<std::int64_t> total_size;  // as the file claims; absent where it is unusable
  std::vector<json::Warning> warnings;
};

// Errors: those of json::parse; kCheckpoint, also for a shard that is not a path inside the folder
// ("../x", "/x", "C:\x"), which is never opened.
Result<Index> parse_index(std::string text, const std::string& file);

// The safetensors files of a model folder.
struct Weights {
  std::vector<std::string> shards;          // names within the folder
  std::vector<std::string> missing_shards;  // named by the index, but not there (or not followed)
  std::vector<std::int64_t> data_begins;    // of each shard, in bytes; 0 for a missing one
  std::vector<Tensor> tensors;              // of the shards that are there; each name once
  std::int64_t tensor_count = 0;            // of all shards, as the index or the headers say
  // Sum of the tensors' bytes where every header could be read, else the index's own claim; absent
  // where neither is known.
  std::optional<std::int64_t> total_bytes;
  bool from_headers = false;  // total_bytes is that sum
  std::string source;         // kIndexName, kSingleName, or "*.safetensors" where neither is there
  std::vector<json::Warning> warnings;
};

// Reads the index and the headers of a folder; absent if it has no safetensors files at all.
// Nothing outside the folder is opened: a shard that is a link out of it counts as missing (with
// `strict`: an error). Errors: those of read_file and of the two parsers, kCheckpoint.
Result<std::optional<Weights>> read_weights(const std::string& folder,
                                            const ReadOptions& options = {});

}  // namespace kernelpath::checkpoint
