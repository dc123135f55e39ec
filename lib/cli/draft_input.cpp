#include "cli/draft_input.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace kernelpath::cli {

Result<std::shared_ptr<const config::ModelConfig>> load_draft(const engines::Engine& engine,
                                                              const engines::Deployment& deployment,
                                                              const config::LoadOptions& options) {
  const std::optional<std::string> path = engine.draft_model(deployment);
  std::error_code ignored;
  if (!path || path->empty() || !std::filesystem::exists(*path, ignored)) return nullptr;
  KERNELPATH_TRY(model, config::load_model(*path, options));
  return std::make_shared<const config::ModelConfig>(std::move(model));
}

}  // namespace kernelpath::cli
