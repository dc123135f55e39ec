#include "engines/external_models.h"

#include "registry/registry.h"
#include "registry/shared_object.h"

#include <utility>

namespace kernelpath::engines {
namespace {

// Hands out the registrations of one provider.
class OneModule : public registry::Loader {
 public:
  explicit OneModule(const registry::SharedObjectProvider& provider) : provider_(provider) {}
  registry::Loaded load(std::string_view /*module*/) override {
    return {.registrations = provider_.registrations};
  }

 private:
  const registry::SharedObjectProvider& provider_;
};

Environment::ExternalModel row_of(const registry::LogEntry& entry) {
  Environment::ExternalModel row = {.module = entry.value.module};
  switch (entry.kind) {
    case registry::Kind::kModelClass:
      row.architecture = entry.key;
      row.model_class = entry.value.name;
      break;
    case registry::Kind::kVisionEncoder:
      row.architecture = entry.key;
      row.vision_encoder = entry.value.name;
      row.vision_base_class = entry.value.base_class.value_or("");
      break;
    case registry::Kind::kDraftBuilder:
      row.speculative_mode = entry.key;
      row.draft_builder = entry.value.name;
      break;
  }
  return row;
}

// A registry of its own resolves which architectures an encoder belongs to; its log is the answer.
Result<void> append_rows(const registry::SharedObjectProvider& provider,
                         std::vector<Environment::ExternalModel>& rows) {
  const registry::StaticIndex no_index;
  OneModule loader(provider);
  registry::Registry registry(no_index, loader);
  if (const auto failure = registry.import(provider.module)) {
    return fail({.code = ErrorCode::kProvider,
                 .message = failure->message,
                 .file = provider.file,
                 .hint = "call model_class before vision_encoder"});
  }
  for (const registry::ModuleLog& log : registry.log()) {
    for (const registry::LogEntry& entry : log.entries) rows.push_back(row_of(entry));
  }
  return {};
}

}  // namespace

Result<std::vector<Environment::ExternalModel>> load_external_models(
    std::span<const std::string> folders) {
  KERNELPATH_TRY(providers, registry::load_provider_folders(folders));
  std::vector<Environment::ExternalModel> rows;
  for (const registry::SharedObjectProvider& provider : providers) {
    KERNELPATH_CHECK_OK(append_rows(provider, rows));
  }
  return rows;
}

}  // namespace kernelpath::engines
