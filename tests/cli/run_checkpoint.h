#pragma once

#include "json/document.h"
#include "run_program.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

// llm-run on the checkpoints of tests/data/checkpoints.
namespace kernelpath::testing {

inline const std::string kLlama = "llama-gqa-tied-llama3rope";

inline std::string checkpoint(const std::string& name) {
  return std::string(KERNELPATH_TEST_DATA) + "/checkpoints/" + name;
}

inline Outcome run(std::vector<std::string> arguments) {
  return run_program("llm-run", {.arguments = std::move(arguments)});
}

// A copy of a checkpoint that may be changed. Returns its folder.
inline std::string copy_checkpoint(const std::string& name, const TemporaryFolder& folder) {
  std::string out = folder.path(name);
  std::filesystem::copy(checkpoint(name), out, std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    std::filesystem::permissions(entry, std::filesystem::perms::owner_all);
  }
  return out;
}

// Replaces the first `from` in a file; throws where it is not there.
void replace_in_file(const std::string& path, const std::string& from, const std::string& to);

inline std::vector<json::Value> lines_of(const std::string& text) {
  std::vector<json::Value> out;
  std::size_t first = 0;
  for (std::size_t end = 0; (end = text.find('\n', first)) != std::string::npos; first = end + 1) {
    out.push_back(json::parse(text.substr(first, end - first), "line").value().root);
  }
  return out;
}

}  // namespace kernelpath::testing
