#pragma once

#include "config/model_config.h"
#include "engines/llamacpp/metadata.h"
#include "engines/llamacpp/profile.h"

#include <string>

namespace kernelpath::engines::llamacpp {

// What the converter makes of a config.json.
struct Conversion {
  std::string architecture;  // the entry of `architectures` that decides
  const ConverterRow* row = nullptr;
  std::string gguf;             // after what the converter's class changes
  std::string override_reason;  // why that is not the row's; else empty
  std::string error;            // the converter's words, where it stops
  Metadata metadata;            // what shapes memory and attention
};

// Names the architecture as convert_hf_to_gguf.py does, and writes the metadata that memory and
// attention depend on; required keys that nothing here depends on get a placeholder.
// Source: llama.cpp 0c1e5709, conversion/base.py (get_model_architecture, TextModel) and the
// classes of conversion/*.py.
Conversion convert_config(const Profile& profile, const config::ModelConfig& model);

}  // namespace kernelpath::engines::llamacpp
