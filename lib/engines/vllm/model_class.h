#pragma once

#include "engines/resolution.h"
#include "engines/vllm/model_registry.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::vllm {

// A class that a plugin registered for an architecture, new or known; the last one wins.
struct RegisteredModel {
  std::string architecture;
  std::string module;
  std::string class_name;
  ModelInfo info = {};
};

// What decides on the class.
struct ModelClassQuestion {
  std::vector<std::string> architectures;
  std::string model_impl = "auto";  // "auto", "vllm", "transformers", "terratorch"
  std::string runner = "auto";      // "auto", "generate", "pooling", "draft"
  std::string convert = "auto";     // "auto", "none", "embed", "classify"
  bool has_pooling_config = false;  // the checkpoint brings Sentence Transformers' pooling file
  bool nested_text_config = false;
  std::int64_t num_experts = 0;
  std::vector<RegisteredModel> registered = {};
};

struct ModelClass {
  std::string architecture;  // the name that counts from here on
  std::string class_name;
  std::string module;
  std::string runner;
  std::string convert;
  bool transformers_backend = false;
  std::string normalised_from;  // the name whose ending was replaced; empty where none was
  ModelInfo info;
  // A package or name that the class needs and that the installation which was read lacked.
  std::string missing;
  std::optional<EngineError> error = {};
};

// Architecture, class, runner and conversion. Source: config/model.py (_get_runner_type,
// _get_convert_type, _get_transformers_backend_cls), model_executor/models/registry.py.
ModelClass resolve_model_class(const ModelRegistry& registry, const ModelClassQuestion& question);

}  // namespace kernelpath::engines::vllm
