#pragma once

#include "base/result.h"
#include "config/load.h"
#include "engines/engine.h"

#include <memory>

namespace kernelpath::cli {

// The draft that `engine` would load for `deployment`: a null pointer where there is none, or where
// it is not on this machine (a repository's name). Errors: those of config::load_model().
Result<std::shared_ptr<const config::ModelConfig>> load_draft(const engines::Engine& engine,
                                                              const engines::Deployment& deployment,
                                                              const config::LoadOptions& options);

}  // namespace kernelpath::cli
