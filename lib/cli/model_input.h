#pragma once

#include "base/result.h"
#include "config/load.h"
#include "json/document.h"

#include <optional>
#include <string>
#include <vector>

// MODEL as the command line names it: a path, or "-" for a configuration on standard input.

namespace kernelpath::cli {

// Standard input can be one MODEL only, and must not be a terminal. Errors: kUsage, kUsageConflict.
Result<void> check_models(const std::vector<std::string>& models);

// Errors as config::load_model.
Result<config::ModelConfig> load_input(const std::string& path, const config::LoadOptions& options);

struct LoadedModel {
  config::ModelConfig config;
  // The text that it was read from, for lines and columns; nothing where it cannot be read again.
  std::optional<json::Document> document = {};
};
Result<LoadedModel> load_with_text(const std::string& path, const config::LoadOptions& options);

}  // namespace kernelpath::cli
