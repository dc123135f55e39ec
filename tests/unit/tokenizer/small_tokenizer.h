#pragma once

#include "recorded.h"

#include <memory>
#include <string>
#include <utility>

namespace kernelpath::tokenizer {

// Members of a tokenizer.json of a handful of tokens; each is JSON text and may be replaced.
struct SmallTokenizer {
  std::string added_tokens = "[]";
  std::string normalizer = "null";
  std::string pre_tokenizer = "null";
  std::string post_processor = "null";
  std::string decoder = R"({"type": "Fuse"})";
  std::string vocab = R"({"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, " ": 5, "é": 6, "?": 7})";
  std::string merges = R"(["a b", "ab c"])";
  std::string model_extra;  // ", \"unk_token\": \"?\""

  [[nodiscard]] std::string json() const {
    return R"({"version": "1.0", "added_tokens": )" + added_tokens + R"(, "normalizer": )" +
           normalizer + R"(, "pre_tokenizer": )" + pre_tokenizer + R"(, "post_processor": )" +
           post_processor + R"(, "decoder": )" + decoder +
           R"(, "model": {"type": "BPE", "vocab": )" + vocab + R"(, "merges": )" + merges +
           model_extra + "}}";
  }

  [[nodiscard]] Result<std::unique_ptr<Tokenizer>> load() const {
    return load_text(json(), "tokenizer.json");
  }

  // The ids of a text without what is put around it.
  [[nodiscard]] std::vector<TokenId> encode(const std::string& text) const {
    return load().value()->encode(text, {.add_special_tokens = false}).value();
  }
};

}  // namespace kernelpath::tokenizer
