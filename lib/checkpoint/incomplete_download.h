#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>

namespace kernelpath::checkpoint {

// The text files that are found under a weight file's name after an incomplete download: a Git LFS
// pointer, a web page. `kind` is what the file should be ("safetensors"). Error kInputKind.
std::optional<Error> incomplete_download(std::string_view start, const std::string& file,
                                         std::string_view kind);

}  // namespace kernelpath::checkpoint
