#include "checkpoint/tensor_files.h"

#include "base/file.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kernelpath::checkpoint {
namespace {

Unexpected system_failure(const std::string& path, std::string_view call, int number) {
  return fail(Error{.code = ErrorCode::kRuntime,
                    .message = fmt::format("{} failed: {}", call, std::strerror(number)),
                    .file = path});
}

Unexpected missing_shards(const std::string& folder, const Weights& weights) {
  return fail(Error{
      .code = ErrorCode::kCheckpoint,
      .message =
          fmt::format("{} of {} shards are missing: {}", weights.missing_shards.size(),
                      weights.shards.size(), shorten(join(weights.missing_shards, ", "), 300)),
      .file = join_path(folder, weights.source),
      .hint = "download the missing files; a link out of the folder is not followed"});
}

// What stands in the place of weights is named: a link that leads nowhere looks like a file.
Unexpected no_safetensors(const std::string& folder) {
  Error error{.code = ErrorCode::kInputMissing,
              .message = "no safetensors files in the folder",
              .file = folder,
              .hint = "give a folder with config.json and *.safetensors, or a GGUF file"};
  const auto names = list_folder(folder);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    if (!name.ends_with(".safetensors")) continue;
    const Result<PathKind> kind = path_kind(join_path(folder, name));
    if (!kind) return fail(kind.error());
    const std::string_view what = *kind == PathKind::kMissing  ? "a link that leads nowhere"
                                  : *kind == PathKind::kFolder ? "a folder"
                                                               : "no regular file";
    error.message += fmt::format(": {} is {}", name, what);
    break;
  }
  return fail(std::move(error));
}

}  // namespace

Result<TensorFiles> TensorFiles::open(const std::string& path) {
  TensorFiles out;
  KERNELPATH_TRY(kind, path_kind(path));
  if (kind == PathKind::kFile) {
    KERNELPATH_CHECK_OK(out.add_gguf(path));
  } else {
    KERNELPATH_CHECK_OK(out.add_safetensors(path));
  }
  KERNELPATH_CHECK_OK(out.check_ranges());
  std::ranges::sort(out.tensors_, {}, &StoredTensor::name);
  return out;
}

TensorFiles::~TensorFiles() { close_all(); }

TensorFiles::TensorFiles(TensorFiles&& other) noexcept
    : paths_(std::move(other.paths_)),
      descriptors_(std::exchange(other.descriptors_, {})),
      sizes_(std::move(other.sizes_)),
      tensors_(std::move(other.tensors_)),
      warnings_(std::move(other.warnings_)) {}

TensorFiles& TensorFiles::operator=(TensorFiles&& other) noexcept {
  if (this == &other) return *this;
  close_all();
  paths_ = std::move(other.paths_);
  descriptors_ = std::exchange(other.descriptors_, {});
  sizes_ = std::move(other.sizes_);
  tensors_ = std::move(other.tensors_);
  warnings_ = std::move(other.warnings_);
  return *this;
}

void TensorFiles::close_all() {
  for (const int descriptor : descriptors_) ::close(descriptor);
  descriptors_.clear();
}

void TensorFiles::rename(const std::function<std::string(const std::string&)>& to) {
  for (StoredTensor& tensor : tensors_) tensor.name = to(tensor.name);
  std::ranges::sort(tensors_, {}, &StoredTensor::name);
}

const StoredTensor* TensorFiles::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name);
  return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

Result<void> TensorFiles::add_safetensors(const std::string& folder) {
  KERNELPATH_TRY(found, read_weights(folder));
  if (!found) return no_safetensors(folder);
  const Weights& weights = *found;
  if (!weights.missing_shards.empty()) return missing_shards(folder, weights);
  warnings_ = weights.warnings;
  for (const std::string& shard : weights.shards) {
    KERNELPATH_CHECK_OK(open_file(join_path(folder, shard)));
  }
  tensors_.reserve(weights.tensors.size());
  for (const Tensor& tensor : weights.tensors) {
    tensors_.push_back({.name = tensor.name,
                        .type = std::string(tensor.dtype.name),
                        .shape = tensor.shape,
                        .bytes = tensor.bytes,
                        .file = tensor.shard,
                        .offset = weights.data_begins[tensor.shard] + tensor.begin});
  }
  return {};
}

Result<void> TensorFiles::add_gguf(const std::string& path) {
  KERNELPATH_TRY(gguf, read_gguf(path));
  warnings_ = gguf.warnings;
  for (const GgufPart& part : gguf.files) KERNELPATH_CHECK_OK(open_file(part.path));
  tensors_.reserve(gguf.tensors.size());
  for (const GgufTensor& tensor : gguf.tensors) {
    StoredTensor stored{.name = tensor.name,
                        .type = std::string(tensor.type->name),
                        .shape = {},
                        .bytes = tensor.bytes,
                        .file = static_cast<std::size_t>(tensor.part)};
    std::reverse_copy(tensor.shape.begin(), tensor.shape.begin() + tensor.dimensions,
                      std::back_inserter(stored.shape));
    stored.offset = gguf.files[stored.file].data_begin + tensor.offset;
    tensors_.push_back(std::move(stored));
  }
  return {};
}

Result<void> TensorFiles::open_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_failure(path, "open", errno);
  descriptors_.push_back(descriptor);
  paths_.push_back(path);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return system_failure(path, "fstat", errno);
  sizes_.push_back(status.st_size);
  return {};
}

Result<void> TensorFiles::check_ranges() const {
  for (const StoredTensor& tensor : tensors_) {
    const std::int64_t size = sizes_[tensor.file];
    if (tensor.offset >= 0 && tensor.bytes >= 0 && tensor.bytes <= size - tensor.offset) continue;
    return fail(
        Error{.code = ErrorCode::kCheckpoint,
              .message = fmt::format("the tensor's {} bytes begin at byte {}, but the file has {}",
                                     tensor.bytes, tensor.offset, size),
              .file = paths_[tensor.file],
              .where = tensor.name,
              .hint = "the file is cut off or changed while it was opened; download it again"});
  }
  return {};
}

Result<void> TensorFiles::read(const StoredTensor& tensor, std::int64_t first,
                               std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::int64_t at = tensor.offset + first + static_cast<std::int64_t>(done);
    const ssize_t got =
        ::pread(descriptors_[tensor.file], out.data() + done, out.size() - done, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure(paths_[tensor.file], "pread", errno);
    if (got == 0) {
      return fail(Error{.code = ErrorCode::kCheckpoint,
                        .message = fmt::format("the file ends at byte {}, inside the tensor", at),
                        .file = paths_[tensor.file],
                        .where = tensor.name,
                        .hint = "the file was cut off while it was read; download it again"});
    }
    done += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace kernelpath::checkpoint
