#include "checkpoint/weights.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kernelpath::checkpoint {
namespace {

constexpr std::string_view kAnySafetensors = "*.safetensors";

// A fact that may hold for thousands of tensors and is told once, with its first example.
struct Tally {
  std::size_t count = 0;
  std::string first;

  void add(const std::string& name) {
    if (count++ == 0) first = name;
  }
};

bool by_name(const Tensor& a, const Tensor& b) {
  return a.name != b.name ? a.name < b.name : a.shard < b.shard;
}

class FolderReader {
 public:
  FolderReader(const std::string& folder, const ReadOptions& options)
      : folder_(folder), options_(options) {}

  Result<std::optional<Weights>> read() {
    KERNELPATH_TRY(index_state, look(std::string(kIndexName)));
    if (index_state == State::kThere) {
      KERNELPATH_CHECK_OK(read_index());
    } else {
      KERNELPATH_CHECK_OK(find_shards());
    }
    if (weights_.shards.empty() && !index_) return std::optional<Weights>();
    KERNELPATH_CHECK_OK(read_headers());
    merge();
    KERNELPATH_CHECK_OK(add_up());
    return std::optional<Weights>(std::move(weights_));
  }

 private:
  enum class State { kThere, kMissing, kOutside };

  // Is a file there, and may it be opened?
  Result<State> look(const std::string& name) {
    const std::string path = join_path(folder_, name);
    KERNELPATH_TRY(kind, path_kind(path));
    if (kind == PathKind::kMissing) return State::kMissing;
    const std::string target = target_outside(path, folder_);
    if (target.empty()) return State::kThere;
    const std::string message =
        fmt::format("a link out of the model's folder, to {}; not followed", target);
    if (options_.strict) {
      return fail(Error{.code = ErrorCode::kCheckpoint, .message = message, .file = path});
    }
    warn("CHECKPOINT-LINK-OUTSIDE", name, message);
    return State::kOutside;
  }

  Result<void> read_index() {
    const std::string path = join_path(folder_, kIndexName);
    KERNELPATH_TRY(contents, read_file(path, kMaxIndexBytes));
    KERNELPATH_TRY(index, parse_index(std::move(contents.text), path));
    weights_.source = kIndexName;
    weights_.shards = index.shards;
    std::move(index.warnings.begin(), index.warnings.end(), std::back_inserter(weights_.warnings));
    index_ = std::move(index);
    if (is_file(join_path(folder_, kSingleName)) && !names(kSingleName)) warn_two_sources();
    return {};
  }

  [[nodiscard]] bool names(std::string_view shard) const {
    return std::find(weights_.shards.begin(), weights_.shards.end(), shard) !=
           weights_.shards.end();
  }

  void warn_two_sources() {
    warn("CHECKPOINT-TWO-SOURCES", std::string(kSingleName),
         fmt::format("both this file and {} are there: the index counts here and in vLLM; "
                     "transformers reads the single file",
                     kIndexName));
  }

  // Without an index: model.safetensors; without that, every *.safetensors as engines do, but not a
  // consolidated file that repeats the others.
  Result<void> find_shards() {
    if (is_file(join_path(folder_, kSingleName))) {
      weights_.source = kSingleName;
      weights_.shards = {std::string(kSingleName)};
      return {};
    }
    KERNELPATH_TRY(all, list_folder(folder_));
    std::vector<std::string> found;
    for (const std::string& name : all) {
      if (!name.ends_with(".safetensors")) continue;
      if (is_file(join_path(folder_, name))) found.push_back(name);
    }
    const auto is_consolidated = [](const std::string& name) {
      return name.find("consolidated") != std::string::npos;
    };
    if (!std::all_of(found.begin(), found.end(), is_consolidated)) {
      found.erase(std::remove_if(found.begin(), found.end(), is_consolidated), found.end());
    }
    weights_.source = kAnySafetensors;
    weights_.shards = std::move(found);
    return {};
  }

  Result<void> read_headers() {
    is_there_.assign(weights_.shards.size(), false);
    weights_.data_begins.assign(weights_.shards.size(), 0);
    for (std::size_t shard = 0; shard < weights_.shards.size(); ++shard) {
      const std::string& name = weights_.shards[shard];
      KERNELPATH_TRY(state, look(name));
      if (state != State::kThere) {
        weights_.missing_shards.push_back(name);
        continue;
      }
      is_there_[shard] = true;
      KERNELPATH_TRY(header, read_safetensors(join_path(folder_, name), options_));
      weights_.data_begins[shard] = header.header_bytes;
      for (Tensor& tensor : header.tensors) {
        tensor.shard = shard;
        weights_.tensors.push_back(std::move(tensor));
      }
      std::move(header.warnings.begin(), header.warnings.end(),
                std::back_inserter(weights_.warnings));
    }
    if (!weights_.missing_shards.empty()) {
      warn("CHECKPOINT-SHARD-MISSING", std::string(kIndexName),
           fmt::format("{} of {} shards are missing, their tensors' sizes are unknown: {}",
                       weights_.missing_shards.size(), weights_.shards.size(),
                       shorten(join(weights_.missing_shards, ", "), 300)));
    }
    return {};
  }

  // Orders the tensors by name, keeps one of each and compares them with the index.
  void merge() {
    std::sort(weights_.tensors.begin(), weights_.tensors.end(), by_name);
    if (index_) std::sort(index_->weight_map.begin(), index_->weight_map.end());
    std::vector<Tensor> kept;
    kept.reserve(weights_.tensors.size());
    Tally twice;
    Tally unlisted;
    Tally absent;
    std::size_t entry = 0;
    for (auto first = weights_.tensors.begin(); first != weights_.tensors.end();) {
      const auto last = std::find_if(first, weights_.tensors.end(),
                                     [&](const Tensor& t) { return t.name != first->name; });
      if (last - first > 1) twice.add(first->name);
      const auto listed = index_ ? seek(first->name, entry, absent) : std::nullopt;
      if (index_ && !listed) unlisted.add(first->name);
      const auto chosen =
          std::find_if(first, last, [&](const Tensor& t) { return !listed || t.shard == *listed; });
      if (chosen == last) absent.add(first->name);
      kept.push_back(std::move(chosen == last ? *first : *chosen));
      first = last;
    }
    if (index_) seek({}, entry, absent);
    weights_.tensors = std::move(kept);
    weights_.tensor_count = static_cast<std::int64_t>(
        index_ ? index_->weight_map.size() + unlisted.count : weights_.tensors.size());
    report(twice, "CHECKPOINT-TENSOR-TWICE", "in two shards");
    report(unlisted, "CHECKPOINT-NOT-IN-INDEX", "in a shard, but not in the index");
    report(absent, "CHECKPOINT-NOT-IN-SHARD", "not in the shard that the index names");
  }

  // The shard that the index gives for `name`; entries before it whose shard is there, but without
  // that tensor, are counted in `absent`. An empty name goes to the end.
  std::optional<std::size_t> seek(std::string_view name, std::size_t& entry, Tally& absent) {
    for (; entry < index_->weight_map.size(); ++entry) {
      const auto& [listed, shard] = index_->weight_map[entry];
      if (!name.empty() && listed >= name) break;
      if (is_there_[shard]) absent.add(listed);
    }
    if (entry == index_->weight_map.size() || index_->weight_map[entry].first != name) {
      return std::nullopt;
    }
    return index_->weight_map[entry++].second;
  }

  Result<void> add_up() {
    std::int64_t sum = 0;
    for (const Tensor& tensor : weights_.tensors) {
      const auto next = checked_add(sum, tensor.bytes);
      if (!next) {
        return fail(Error{.code = ErrorCode::kCheckpoint,
                          .message = "the sum of all tensors does not fit 64 bits",
                          .file = folder_});
      }
      sum = *next;
    }
    const std::optional<std::int64_t> claim = index_ ? index_->total_size : std::nullopt;
    weights_.from_headers = weights_.missing_shards.empty();
    weights_.total_bytes = weights_.from_headers ? std::optional(sum) : claim;
    if (weights_.from_headers && claim && *claim != sum) {
      warn("CHECKPOINT-TOTAL-SIZE", fmt::format("{}:/metadata/total_size", kIndexName),
           fmt::format("says {}, the tensors add up to {}; the sum counts", *claim, sum));
    }
    return {};
  }

  void report(const Tally& tally, std::string code, std::string_view what) {
    if (tally.count == 0) return;
    const std::string more =
        tally.count == 1 ? std::string() : fmt::format(" and {} more", tally.count - 1);
    warn(std::move(code), weights_.source,
         fmt::format("tensor {}{}: {}", shorten(tally.first, 200), more, what));
  }

  void warn(std::string code, std::string where, std::string message) {
    weights_.warnings.push_back({std::move(code), std::move(where), std::move(message)});
  }

  const std::string& folder_;
  ReadOptions options_;
  Weights weights_;
  std::optional<Index> index_;
  std::vector<bool> is_there_;  // by shard
};

}  // namespace

Result<std::optional<Weights>> read_weights(const std::string& folder, const ReadOptions& options) {
  return FolderReader(folder, options).read();
}

}  // namespace kernelpath::checkpoint
