#pragma once

#include "base/file.h"
#include "json/document.h"

#include <cstdlib>
#include <string>
#include <utility>

namespace kernelpath::testing {

// A recorded JSON file of up to 1 MiB, which the build has unpacked; without it nothing can be
// tested.
inline json::Document recorded_document(const std::string& path) {
  auto contents = read_file(path, std::size_t{1} << 20);
  if (!contents) std::abort();
  auto parsed = json::parse(std::move(contents->text), path);
  if (!parsed) std::abort();
  return std::move(*parsed);
}

}  // namespace kernelpath::testing
