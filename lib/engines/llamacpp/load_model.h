#pragma once

#include "engines/llamacpp/hparams.h"
#include "engines/llamacpp/metadata.h"
#include "engines/llamacpp/profile.h"

#include <string>
#include <vector>

namespace kernelpath::engines::llamacpp {

// A file's model as the engine would load it, up to its tensors.
struct LoadedModel {
  const ArchitectureRow* architecture = nullptr;  // null where the name is unknown
  const ClassRow* reads = nullptr;
  Hparams hparams;
  // What the engine prints instead of loading, in its words; empty if it loads.
  std::string error = {};
  bool in_hparams = false;  // the error is one of the hyperparameters
  // A broken assertion: the engine would end the process with it.
  bool aborts = false;
};

// Names of the tensors that a rule looks for; empty where only metadata is known.
struct TensorNames {
  bool known = false;
  std::vector<std::string> names = {};
  [[nodiscard]] bool has(std::string_view name) const;
};

// Reads `general.architecture`, then the keys that all classes share, then those of the class.
// Source: src/llama-model.cpp (llama_model_create, load_hparams), src/llama.cpp
// (llama_model_load), src/models/*.cpp.
LoadedModel load_model(const Profile& profile, const Metadata& metadata,
                       const TensorNames& tensors = {});

}  // namespace kernelpath::engines::llamacpp
