#pragma once

#include "config/model_config.h"
#include "engines/resolution.h"
#include "hardware/device.h"
#include "registry/registration.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {

// What the choice of a model class reads of a configuration.
struct ClassInput {
  std::vector<std::string> architectures = {};  // empty: the field is absent, null or []
  bool has_draft_vocab_size = false;            // the field is there, with any value
  // The checkpoint's fingerprint for modeling_v2; of a text configuration where there is one.
  std::optional<std::int64_t> num_hidden_layers = {};
  std::optional<std::int64_t> hidden_size = {};
  std::optional<std::int64_t> num_local_experts = {};
};
ClassInput class_input(const config::ModelConfig& model);

enum class ModelingV2Mode : std::uint8_t { kOff, kAuto, kRequire };

struct ClassOptions {
  bool mm_encoder_only = false;
  ModelingV2Mode modeling_v2 = ModelingV2Mode::kOff;
  std::optional<hardware::Capability> capability = {};  // of the device; none on a machine without
  std::int64_t world_size = 1;                          // ranks of the model
  bool within_bounds = true;      // the deployment is one that the target was certified for
  bool raises_no_target = false;  // building the target finds that it cannot serve
  std::vector<std::string> loader_attrs = {};  // keys the loader put into the extra attributes
};

// What the engine raises.
struct ClassError {
  std::string type;                         // "ValueError"
  std::string code;                         // "UNKNOWN-ARCH"
  std::optional<std::string> subject = {};  // recorded answers write it behind the code and a colon
  std::optional<std::string> missing_module = {};  // ModuleNotFoundError.name
  std::string message = {};                        // in the engine's words
};
ClassError class_error(const registry::Failure& failure);

}  // namespace kernelpath::engines::trtllm
