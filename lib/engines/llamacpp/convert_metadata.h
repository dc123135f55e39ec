#pragma once

#include "config/model_config.h"
#include "engines/llamacpp/metadata.h"
#include "engines/llamacpp/profile.h"

#include <string>

namespace kernelpath::engines::llamacpp {

// The metadata of a converted model of GGUF architecture `gguf`. Prediction layers are left out: a
// default context gives them nothing.
Metadata write_metadata(const Profile& profile, const config::ModelConfig& model,
                        const std::string& gguf);

}  // namespace kernelpath::engines::llamacpp
