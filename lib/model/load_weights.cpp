#include "model/load_weights.h"

#include "base/rounding.h"
#include "base/text.h"
#include "checkpoint/nan_scan.h"
#include "kernels/weight_matrix.h"
#include "model/stored_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace kernelpath::model {
namespace {

using checkpoint::StoredTensor;
using checkpoint::TensorFiles;

// Tensors begin at whole cache lines.
constexpr std::int64_t kAlignment = 64;
// What one thread reads at a time: small enough that the scan for NaN finds it in cache.
constexpr std::int64_t kChunkBytes = std::int64_t{1} << 20;
// Names of one kind that an error spells out.
constexpr std::size_t kNamedTensors = 40;

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// A need with the tensor that answers it, or the part of it that is kept.
struct Match {
  const Need* need = nullptr;
  StoredPart part;
  std::byte* place = nullptr;

  [[nodiscard]] const StoredTensor& tensor() const { return part.tensor(); }
};

StoredPart part_of(const Need& need, const StoredTensor& tensor) {
  return need.kept ? StoredPart(tensor, *need.kept) : StoredPart(tensor);
}

// Columns of the blocks that the type of a tensor is made of.
std::int64_t columns_of_block(std::string_view type) {
  const auto format = kernels::find_ggml_block_format(type);
  return format ? weight_block_cols(*format) : 1;
}

// Whether a rank keeps some columns of a matrix's rows only.
bool cuts_rows(const Need& need, const StoredTensor& tensor) {
  return need.kept && need.kept->dim + 1 == tensor.shape.size();
}

// What is wrong with keeping that part of a tensor; empty: nothing.
std::string cut_blocks(const Need& need, const StoredTensor& tensor) {
  if (!cuts_rows(need, tensor)) return "";
  const std::int64_t block = columns_of_block(tensor.type);
  if (need.kept->keeps_blocks(block)) return "";
  return fmt::format("{}: {} of {} columns a rank cut its {} blocks of {} columns", tensor.name,
                     need.kept->kept(), need.kept->whole, tensor.type, block);
}

// One element may be written [] or [1].
bool same_shape(const std::vector<std::int64_t>& asked, const std::vector<std::int64_t>& found) {
  if (asked == found) return true;
  const auto single = [](const std::vector<std::int64_t>& shape) {
    return shape.empty() || shape == std::vector<std::int64_t>{1};
  };
  return single(asked) && single(found);
}

// Compares what is asked for with what is there, and remembers everything that is wrong.
class Matcher {
 public:
  Matcher(const TensorFiles& files, const LoadRequest& request)
      : files_(files), request_(request) {}

  void add(const Need& need) {
    const StoredTensor* tensor = nullptr;
    for (const std::string& name : need.names) {
      if (tensor == nullptr) tensor = files_.find(name);
    }
    if (tensor == nullptr) {
      missing_.push_back(fmt::format("{} {}", need.names.front(), shape_text(need.shape)));
      return;
    }
    used_.insert(tensor->name);
    if (cuts_rows(need, *tensor)) {
      const std::int64_t columns = need.kept->whole;
      ranks_ = columns / std::max<std::int64_t>(need.kept->kept(), 1);
      row_blocks_ = std::gcd(row_blocks_, columns / columns_of_block(tensor->type));
    }
    if (!same_shape(need.shape, tensor->shape)) {
      misshaped_.push_back(fmt::format("{} is {}, not {}", tensor->name, shape_text(tensor->shape),
                                       shape_text(need.shape)));
    } else if (std::ranges::find(need.types, tensor->type) == need.types.end()) {
      mistyped_.push_back(fmt::format("{} is {}, not {}", tensor->name, tensor->type,
                                      fmt::join(readable_types(need), ", ")));
    } else if (std::string cut = cut_blocks(need, *tensor); !cut.empty()) {
      cut_.push_back(std::move(cut));
    } else {
      matches_.push_back({.need = &need, .part = part_of(need, *tensor)});
    }
  }

  Result<std::vector<Match>> finish(std::vector<json::Warning>& warnings) {
    std::vector<std::string> unread;
    for (const StoredTensor& tensor : files_.tensors()) {
      if (used_.contains(tensor.name)) continue;
      const bool tied_copy = request_.tied && tensor.name == "lm_head.weight";
      const bool known = tied_copy || may_stay_unread(tensor.name, request_.num_layers);
      (known ? unread : unknown_).push_back(tensor.name);
    }
    if (!unread.empty()) {
      warnings.push_back(
          {"CHECKPOINT-UNREAD", files_.files().empty() ? "" : files_.files()[0],
           fmt::format("{} not needed and stay{} unread: {}",
                       unread.size() == 1 ? std::string("1 tensor is")
                                          : fmt::format("{} tensors are", unread.size()),
                       unread.size() == 1 ? "s" : "", listed(unread))});
    }
    const std::size_t wrong =
        missing_.size() + unknown_.size() + misshaped_.size() + mistyped_.size();
    if (wrong == 0 && cut_.empty()) return std::move(matches_);
    if (wrong == 0) return too_many_ranks();
    if (wrong == mistyped_.size() && is_gguf()) return unreadable_format();
    return fail(Error{.code = ErrorCode::kCheckpoint,
                      .message = report(),
                      .file = files_.files().empty() ? "" : parent_of(files_.files()[0]),
                      .hint = "the weights must belong to this config.json: compare "
                              "architectures, sizes and quantization_config"});
  }

 private:
  [[nodiscard]] bool is_gguf() const {
    return !files_.files().empty() && files_.files()[0].ends_with(".gguf");
  }

  // The file is right; there are no kernels for what it holds.
  [[nodiscard]] Unexpected unreadable_format() const {
    return fail(Error{.code = ErrorCode::kUnavailable,
                      .message = report(),
                      .file = files_.files()[0],
                      .hint = "convert the model with llama-quantize, to one of these types with "
                              "--pure, or give the folder with safetensors files"});
  }

  [[nodiscard]] Unexpected too_many_ranks() const {
    return fail(Error{
        .code = ErrorCode::kUnavailable,
        .message = fmt::format("weights cannot be divided among so many ranks: {}", listed(cut_)),
        .where = "--tp",
        .value = std::to_string(ranks_),
        .hint = fmt::format("sizes that cut no block: {}", fmt::join(whole_block_sizes(), ", "))});
  }

  // The divisors of the number of ranks that leave every block of every row whole.
  [[nodiscard]] std::vector<std::int64_t> whole_block_sizes() const {
    std::vector<std::int64_t> sizes;
    for (std::int64_t size = 1; size < ranks_; ++size) {
      if (ranks_ % size == 0 && row_blocks_ % size == 0) sizes.push_back(size);
    }
    return sizes;
  }

  // Of the types that a need can be read from, those that are spelled as in such files.
  [[nodiscard]] std::vector<std::string_view> readable_types(const Need& need) const {
    std::vector<std::string_view> types = need.types;
    const bool lower = is_gguf();  // ggml writes "f16", safetensors "F16"
    std::erase_if(types, [&](std::string_view type) {
      const bool is_lower = type.front() >= 'a' && type.front() <= 'z';
      return is_lower != lower;
    });
    return types;
  }

  static std::string parent_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(0, slash);
  }

  static std::string listed(const std::vector<std::string>& names) {
    const std::size_t shown = std::min(names.size(), kNamedTensors);
    std::string out = fmt::format(
        "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    if (shown < names.size()) out += fmt::format(" and {} more", names.size() - shown);
    return out;
  }

  [[nodiscard]] std::string report() const {
    std::vector<std::string> parts;
    const auto add_part = [&](std::string_view what, const std::vector<std::string>& names) {
      if (!names.empty())
        parts.push_back(fmt::format("{} {}: {}", names.size(), what, listed(names)));
    };
    add_part("missing", missing_);
    add_part("unknown to the model", unknown_);
    add_part("of another shape", misshaped_);
    add_part("of a type that cannot be read", mistyped_);
    return fmt::format("tensors do not fit the model: {}", fmt::join(parts, "; "));
  }

  const TensorFiles& files_;
  const LoadRequest& request_;
  std::vector<Match> matches_;
  std::set<std::string, std::less<>> used_;
  std::vector<std::string> missing_;
  std::vector<std::string> unknown_;
  std::vector<std::string> misshaped_;
  std::vector<std::string> mistyped_;
  std::vector<std::string> cut_;
  std::int64_t ranks_ = 1;       // among which rows are cut
  std::int64_t row_blocks_ = 0;  // what the blocks of all rows that are cut can be divided by
};

// What one thread does at a time: a piece of a tensor that is kept as it is, or a whole tensor.
struct Task {
  const Match* match = nullptr;
  std::int64_t first = 0;
  std::int64_t bytes = 0;
};

bool is_converted(const Match& match) {
  const std::vector<std::string_view>& direct = match.need->direct_types;
  return match.need->convert && std::ranges::find(direct, match.tensor().type) == direct.end();
}

std::vector<Task> make_tasks(std::span<const Match> matches) {
  std::vector<Task> tasks;
  for (const Match& match : matches) {
    const std::int64_t total = match.tensor().bytes;
    const std::int64_t unit = checkpoint::nan_scan_unit(match.tensor().type);
    const std::int64_t step =
        is_converted(match) ? std::max<std::int64_t>(total, 1) : kChunkBytes / unit * unit;
    for (std::int64_t first = 0; first < total; first += step) {
      tasks.push_back({&match, first, std::min(step, total - first)});
    }
  }
  return tasks;
}

// Runs tasks on several threads; the first error wins.
class Reader {
 public:
  explicit Reader(const TensorFiles& files) : files_(files) {}

  Result<void> run(std::span<const Task> tasks, int threads) {
    for (const Task& task : tasks) {
      if (is_converted(*task.match)) largest_ = std::max(largest_, task.bytes);
    }
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back([&] { work(tasks); });
    work(tasks);
    for (std::jthread& other : others) other.join();
    if (error_) return fail(*error_);
    return {};
  }

  [[nodiscard]] const std::set<std::string>& with_nan() const { return with_nan_; }

 private:
  void work(std::span<const Task> tasks) {
    // At once, since a buffer that grows is there twice while it does.
    std::vector<std::byte> buffer;
    buffer.reserve(static_cast<std::size_t>(largest_));
    while (true) {
      const std::size_t number = next_.fetch_add(1, std::memory_order_relaxed);
      if (number >= tasks.size()) return;
      auto done = read(tasks[number], buffer);
      if (done) continue;
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = done.error();
      next_.store(tasks.size(), std::memory_order_relaxed);
    }
  }

  Result<void> read(const Task& task, std::vector<std::byte>& buffer) {
    const Match& match = *task.match;
    const auto size = static_cast<std::size_t>(task.bytes);
    std::span<std::byte> bytes;
    const bool converted = is_converted(match);
    if (converted) {
      buffer.resize(size);
      bytes = buffer;
    } else {
      bytes = {match.place + task.first, size};
    }
    KERNELPATH_CHECK_OK(match.part.read(files_, task.first, bytes));
    if (checkpoint::holds_nan(match.tensor().type, bytes)) {
      const std::lock_guard lock(mutex_);
      with_nan_.insert(match.tensor().name);
    }
    if (converted) match.need->convert(match.tensor(), bytes, match.place);
    return {};
  }

  const TensorFiles& files_;
  std::int64_t largest_ = 0;  // bytes of a tensor that is converted
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::optional<Error> error_;
  std::set<std::string> with_nan_;
};

WeightSizes sizes_of(std::span<const Match> matches, int threads) {
  WeightSizes out;
  std::int64_t largest = 0;
  std::int64_t converted = 0;
  for (const Match& match : matches) {
    const StoredTensor& tensor = match.tensor();
    const std::int64_t bytes = round_up(match.need->resident_bytes(tensor), kAlignment);
    (match.need->temporary ? out.temporary : out.kept) += bytes;
    out.stored += tensor.bytes;
    if (!is_converted(match)) continue;
    largest = std::max(largest, tensor.bytes);
    converted += tensor.bytes;
  }
  out.conversion = std::min(converted, largest * threads);
  out.tensors = static_cast<std::int64_t>(matches.size());
  return out;
}

// Gives every tensor its place, one behind the other.
Result<void> place_all(std::vector<Match>& matches, WeightStore& store) {
  const WeightSizes sizes = sizes_of(matches, 1);
  KERNELPATH_TRY(kept, HugeMemory::allocate(sizes.kept, "weights"));
  KERNELPATH_TRY(temporary, HugeMemory::allocate(sizes.temporary, "weights"));
  store.kept = std::move(kept);
  store.temporary = std::move(temporary);
  std::byte* kept_at = store.kept.data();
  std::byte* temporary_at = store.temporary.data();
  for (Match& match : matches) {
    std::byte*& at = match.need->temporary ? temporary_at : kept_at;
    match.place = at;
    at += round_up(match.need->resident_bytes(match.tensor()), kAlignment);
    match.need->bind(match.tensor(), match.place);
  }
  return {};
}

}  // namespace

Result<WeightSizes> measure_weights(const TensorFiles& files, std::span<const Need> needs,
                                    const LoadRequest& request) {
  Matcher matcher(files, request);
  for (const Need& need : needs) matcher.add(need);
  std::vector<json::Warning> warnings;
  KERNELPATH_TRY(matches, matcher.finish(warnings));
  for (const Match& match : matches) match.need->bind(match.tensor(), nullptr);
  return sizes_of(matches, std::max(request.threads, 1));
}

Result<WeightStore> load_weights(const TensorFiles& files, std::span<const Need> needs,
                                 const LoadRequest& request) {
  WeightStore store;
  store.warnings.assign(files.warnings().begin(), files.warnings().end());
  Matcher matcher(files, request);
  for (const Need& need : needs) matcher.add(need);
  KERNELPATH_TRY(matches, matcher.finish(store.warnings));
  KERNELPATH_CHECK_OK(place_all(matches, store));
  Reader reader(files);
  KERNELPATH_CHECK_OK(reader.run(make_tasks(matches), std::max(request.threads, 1)));
  for (const std::string& name : reader.with_nan()) {
    store.warnings.push_back({"CHECKPOINT-NAN", name, "the tensor holds NaN values"});
  }
  return store;
}

}  // namespace kernelpath::model
