#include "checkpoint/incomplete_download.h"

#include "base/text.h"

#include <fmt/format.h>

namespace kernelpath::checkpoint {

std::optional<Error> incomplete_download(std::string_view start, const std::string& file,
                                         std::string_view kind) {
  const std::string lower = to_lower(trim(start.substr(0, 64)));
  if (lower.starts_with("version https://git-lfs")) {
    return Error{.code = ErrorCode::kInputKind,
                 .message = "a Git LFS pointer, not the weights it stands for",
                 .file = file,
                 .hint = "run `git lfs pull` in the model's folder"};
  }
  if (lower.starts_with("<!doctype") || lower.starts_with("<html")) {
    return Error{.code = ErrorCode::kInputKind,
                 .message = fmt::format("looks like an HTML page, not a {} file", kind),
                 .file = file,
                 .hint = "download the raw file instead of the web page that shows it"};
  }
  return std::nullopt;
}

}  // namespace kernelpath::checkpoint
