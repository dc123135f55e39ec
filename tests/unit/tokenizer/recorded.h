#pragma once

#include "json/document.h"
#include "tokenizer/tokenizer.h"

#include <memory>
#include <string>
#include <vector>

namespace kernelpath::tokenizer {

// A folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  void write(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::string path(const std::string& name) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline const std::vector<std::string>& recorded_kinds() {
  static const std::vector<std::string> kinds = {"gpt2",          "llama3",     "qwen",
                                                 "spm_metaspace", "spm_legacy", "spm_gemma"};
  return kinds;
}

// One kind of golden/tokenizer: its tokenizer, loaded from a folder as models have it, and what the
// Python libraries gave for it.
struct Recorded {
  TemporaryFolder folder;
  std::unique_ptr<Tokenizer> tokenizer;
  json::Document answers;
};
std::unique_ptr<Recorded> load_recorded(const std::string& kind);

std::string read_text(const std::string& path);
std::vector<TokenId> ids_of(const json::Value& list);

}  // namespace kernelpath::tokenizer
