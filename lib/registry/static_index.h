#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::registry {

// Key → short module name, in the order in which the rows were written down.
class IndexTable {
 public:
  using Row = std::pair<std::string, std::string>;

  // False if the key has a row already; the first one stays.
  bool add(std::string key, std::string module);
  // Null pointer if there is no such row.
  [[nodiscard]] const std::string* find(std::string_view key) const;
  [[nodiscard]] std::span<const Row> rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
  std::map<std::string, std::size_t, std::less<>> positions_;
};

// Which built-in module provides what, known without loading anything.
struct StaticIndex {
  std::string package;  // of all built-in modules: "tensorrt_llm._torch.models"
  IndexTable architectures;
  IndexTable classes;      // public class name → module
  IndexTable spec_modes;   // speculative mode → module with its draft builder
  IndexTable model_types;  // model_type of an input processor → module

  // "modeling_llama" → "tensorrt_llm._torch.models.modeling_llama".
  [[nodiscard]] std::string full_name(std::string_view short_name) const;
  // True for the package itself and for what lies inside it; "…models_custom" lies beside it.
  [[nodiscard]] bool is_built_in(std::string_view module) const;
};

}  // namespace kernelpath::registry
