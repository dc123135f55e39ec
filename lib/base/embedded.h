#pragma once

#include <cstddef>
#include <string_view>

namespace kernelpath {

// A data file that the build put inside the program; kernelpath_embed() in
// cmake/KernelpathEmbed.cmake generates the tables of these.
struct EmbeddedFile {
  // Zero bytes that follow every content, so that a parser which reads in blocks (simdjson) can
  // work on the content where it lies.
  static constexpr std::size_t kPadding = 64;

  std::string_view path;     // below the folder that was embedded: "trtllm-2026-11/registry.json"
  std::string_view content;  // as it is on disk
};

}  // namespace kernelpath
