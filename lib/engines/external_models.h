#pragma once

#include "base/result.h"
#include "engines/request.h"

#include <span>
#include <string>
#include <vector>

namespace kernelpath::engines {

// What the provider shared objects of --custom-module-dirs register, in load order: folders as
// given, files by name. Runs the providers' code. Errors: those of registry::load_provider_folders,
// and kProvider for a vision encoder whose class was not registered before it.
Result<std::vector<Environment::ExternalModel>> load_external_models(
    std::span<const std::string> folders);

}  // namespace kernelpath::engines
