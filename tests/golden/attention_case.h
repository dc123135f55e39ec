#pragma once

#include "attention/params.h"
#include "base/file.h"
#include "json/document.h"
#include "paged_case.h"
#include "recorded_document.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The recorded attention cases of golden/attention.
namespace kernelpath::testing {

// The folder of the recorded cases: KERNELPATH_GOLDEN_DIR of the environment (for a test that runs
// on another machine than it was built on), else the build's.
inline std::string golden_attention_folder() {
  const char* const moved = std::getenv("KERNELPATH_GOLDEN_DIR");
  return std::string(moved != nullptr ? moved : KERNELPATH_GOLDEN_DIR) + "/attention/";
}

inline const json::Document& golden_index() {
  static const json::Document document =
      recorded_document(golden_attention_folder() + "index.json");
  return document;
}

// A recorded case.
class Case {
 public:
  explicit Case(const json::Value& value) : value_(&value) {}

  [[nodiscard]] const std::string& text(std::string_view key) const {
    return member(key).as_string();
  }
  // 0 for null.
  [[nodiscard]] std::int64_t integer(std::string_view key) const {
    const json::Value& value = member(key);
    return value.is_null() ? 0 : value.as_integer();
  }
  [[nodiscard]] float number(std::string_view key) const {
    const json::Value& value = member(key);
    return value.is_null() ? 0.0F : static_cast<float>(value.as_double());
  }
  [[nodiscard]] bool flag(std::string_view key) const { return member(key).as_bool(); }
  [[nodiscard]] const json::Value& member(std::string_view key) const {
    const json::Value* found = value_->find(key);
    if (found == nullptr) {
      ADD_FAILURE() << "no " << key;
      std::abort();
    }
    return *found;
  }
  [[nodiscard]] std::vector<float> tensor(std::string_view key) const {
    const std::string path = golden_attention_folder() + Case(member("files")).file_of(key);
    const auto contents = read_file(path, std::size_t{64} << 20);
    if (!contents) {
      ADD_FAILURE() << contents.error().text();
      std::abort();
    }
    std::vector<float> out(contents->text.size() / sizeof(float));
    std::memcpy(out.data(), contents->text.data(), out.size() * sizeof(float));
    return out;
  }
  [[nodiscard]] Output output(std::string_view o = "o") const {
    return {.o = tensor(o), .lse = tensor("lse")};
  }
  [[nodiscard]] attention::Geometry geometry() const {
    return {.num_heads = integer("num_q_heads"),
            .num_kv_heads = integer("num_kv_heads"),
            .head_dim = integer("head_dim"),
            .v_head_dim = integer("v_head_dim"),
            .softmax_scale = number("scale"),
            .softcap = number("softcap"),
            .window = integer("window"),
            .chunk = integer("chunk"),
            .causal = flag("causal")};
  }
  [[nodiscard]] Lengths lengths() const {
    return {.queries = integer("q_len"), .seq_len = integer("kv_len")};
  }

 private:
  [[nodiscard]] std::string file_of(std::string_view key) const {
    return Case(member(key)).text("file");
  }

  const json::Value* value_;
};

inline std::vector<Case> cases_of(std::string_view kind) {
  std::vector<Case> out;
  const json::Value* cases = golden_index().root.find("cases");
  for (const json::Value& value : cases->items()) {
    if (Case(value).text("kind") == kind) out.emplace_back(value);
  }
  return out;
}

}  // namespace kernelpath::testing
