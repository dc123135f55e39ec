#pragma once

#include "base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// What the engine's inspection of a model class says, as far as the resolution reads it.
struct ModelInfo {
  std::string attention_type = "decoder";
  std::string default_seq_pooling_type = "LAST";
  bool is_text_generation = true;
  bool is_pooling = false;
  bool supports_multimodal = false;
  bool has_inner_state = false;
  bool is_attention_free = false;
  bool is_hybrid = false;
  bool supports_mamba_prefix_caching = false;
  bool supports_pp = true;
};

struct ArchitectureRow {
  std::string architecture = {};
  std::string module = {};
  std::string table_class = {};  // as the table names it
  std::string class_name = {};   // as it was defined; another name where the table has an alias
  std::vector<std::string> categories = {};
  // What the installation that was read lacked to import the module; empty: nothing.
  std::string missing = {};
  ModelInfo info = {};
  // Layers that the class's own code names, with those of their arguments that count:
  // "Attention(per_layer_sliding_window, sinks)".
  std::vector<std::string> builds = {};
  bool delegates = false;  // it also builds a model that the registry finds by another name
};

// What the end of a name means, where the registry does not know it.
struct SuffixRow {
  std::string suffix;
  std::string runner;   // "generate", "pooling"
  std::string convert;  // "none", "embed", "classify"
};

// The table of model classes at one version. Source: model_executor/models/registry.py.
struct ModelRegistry {
  std::vector<ArchitectureRow> architectures;                             // in the engine's order
  std::vector<std::pair<std::string, std::string>> previously_supported;  // → last version
  std::vector<std::pair<std::string, std::string>> out_of_tree;           // → its plugin
  std::vector<SuffixRow> suffixes;                                        // first match counts
  std::vector<std::pair<std::string, std::string>> hooks;                 // → hook class
  // Classes of the Transformers library: whether its modelling code can serve them here.
  std::map<std::string, bool, std::less<>> transformers;

  [[nodiscard]] const ArchitectureRow* find(std::string_view architecture) const;
};

// Reads a registry table. `file` is used in errors only. Error kInputSchema.
Result<ModelRegistry> parse_registry(std::string text, const std::string& file);

// The embedded registry of a version of built_in_versions(); parsed at the first call, safe from
// several threads.
const ModelRegistry& built_in_registry(std::string_view version);

}  // namespace kernelpath::engines::vllm
