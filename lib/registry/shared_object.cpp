#include "registry/shared_object.h"

#include "registry/provider_abi.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace kernelpath::registry {
namespace {

constexpr const char* kEntryPoint = "kernelpath_provider_entry";

// What the calls of a start collect. The first refusal is kept: later ones may follow from it.
struct Recording {
  std::vector<Registration> registrations;
  std::string refusal;
  std::string failure;
};

Error provider_error(const std::string& file, std::string message, std::string hint = {}) {
  return {.code = ErrorCode::kProvider,
          .message = std::move(message),
          .file = file,
          .hint = std::move(hint)};
}

std::string last_dl_error() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error of the dynamic linker" : text;
}

bool is_name(const char* text) {
  return text != nullptr && *text != '\0' &&
         strnlen(text, KERNELPATH_PROVIDER_MAX_NAME + 1) <= KERNELPATH_PROVIDER_MAX_NAME;
}

int refuse(Recording& recording, std::string_view call, std::string_view argument) {
  if (recording.refusal.empty()) {
    recording.refusal =
        std::string(call) + " was called with a null, empty or too long " + std::string(argument);
  }
  return 1;
}

// The four calls of kernelpath_registrar. They are called from C, so nothing may be thrown.
extern "C" {

static int record_model_class(void* context, const char* architecture,
                              const char* class_name) noexcept {
  auto& recording = *static_cast<Recording*>(context);
  if (!is_name(architecture)) return refuse(recording, "model_class", "architecture");
  if (!is_name(class_name)) return refuse(recording, "model_class", "class name");
  recording.registrations.push_back(
      {.kind = Kind::kModelClass, .key = architecture, .name = class_name});
  return 0;
}

static int record_vision_encoder(void* context, const char* class_name, const char* encoder_class,
                                 const char* base_class) noexcept {
  auto& recording = *static_cast<Recording*>(context);
  if (!is_name(class_name)) return refuse(recording, "vision_encoder", "class name");
  if (!is_name(encoder_class)) return refuse(recording, "vision_encoder", "encoder class");
  if (base_class != nullptr && !is_name(base_class)) {
    return refuse(recording, "vision_encoder", "base class");
  }
  Registration encoder = {
      .kind = Kind::kVisionEncoder, .name = encoder_class, .model_class = class_name};
  if (base_class != nullptr) encoder.base_class = base_class;
  recording.registrations.push_back(std::move(encoder));
  return 0;
}

static int record_draft_builder(void* context, const char* mode, const char* builder) noexcept {
  auto& recording = *static_cast<Recording*>(context);
  if (!is_name(mode)) return refuse(recording, "draft_builder", "mode");
  if (!is_name(builder)) return refuse(recording, "draft_builder", "builder");
  recording.registrations.push_back({.kind = Kind::kDraftBuilder, .key = mode, .name = builder});
  return 0;
}

static int record_failure(void* context, const char* message) noexcept {
  auto& recording = *static_cast<Recording*>(context);
  if (message != nullptr) recording.failure = message;
  return 1;
}

}  // extern "C"

// Runs the provider's own code. A provider written in C++ may throw in spite of the C interface.
Result<int> run_start(const kernelpath_provider& provider, const std::string& file,
                      Recording& recording) {
  const kernelpath_registrar registrar = {.context = &recording,
                                          .model_class = record_model_class,
                                          .vision_encoder = record_vision_encoder,
                                          .draft_builder = record_draft_builder,
                                          .fail = record_failure};
  try {
    return provider.start(&registrar);
  } catch (const std::exception& thrown) {
    return fail(provider_error(file, std::string("its start threw: ") + thrown.what()));
  } catch (...) {
    return fail(provider_error(file, "its start threw something that is no std::exception"));
  }
}

Result<SharedObjectProvider> start_provider(const kernelpath_provider& provider,
                                            const std::string& file) {
  if (!is_name(provider.module)) {
    return fail(provider_error(file, "the provider names no module, or one longer than 255 bytes"));
  }
  if (provider.start == nullptr) return fail(provider_error(file, "the provider has no start"));
  Recording recording;
  KERNELPATH_TRY(status, run_start(provider, file, recording));
  if (!recording.refusal.empty()) return fail(provider_error(file, recording.refusal));
  if (status != 0) {
    std::string message = "its start failed with status " + std::to_string(status);
    if (!recording.failure.empty()) message += ": " + recording.failure;
    return fail(provider_error(file, std::move(message)));
  }
  return SharedObjectProvider{.file = file,
                              .module = provider.module,
                              .registrations = std::move(recording.registrations),
                              .library = nullptr};
}

Result<std::vector<std::string>> shared_objects_of(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code status;
  const fs::file_status kind = fs::status(folder, status);
  const auto folder_error = [&](ErrorCode code, std::string message) {
    return fail(Error{.code = code,
                      .message = std::move(message),
                      .file = folder,
                      .hint = "--custom-module-dirs takes folders with provider *.so files"});
  };
  if (kind.type() == fs::file_type::not_found) {
    return folder_error(ErrorCode::kInputMissing, "there is no such folder");
  }
  if (status) return folder_error(ErrorCode::kInputPermission, status.message());
  if (!fs::is_directory(kind)) return folder_error(ErrorCode::kInputKind, "this is not a folder");

  std::vector<std::string> files;
  fs::directory_iterator entry(folder, status);
  for (; !status && entry != fs::directory_iterator(); entry.increment(status)) {
    std::error_code ignored;
    if (entry->path().extension() == ".so" && entry->is_regular_file(ignored)) {
      files.push_back(entry->path().string());
    }
  }
  if (status) return folder_error(ErrorCode::kInputPermission, status.message());
  if (files.empty()) return folder_error(ErrorCode::kProvider, "the folder holds no *.so file");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Result<SharedObjectProvider> load_shared_object(const std::string& file) {
  // Without a slash the linker would search its own path instead of this file.
  const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
  std::shared_ptr<void> library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL),
                                [](void* handle) { handle != nullptr ? dlclose(handle) : 0; });
  if (library == nullptr) {
    return fail(provider_error(file, "cannot be loaded: " + last_dl_error()));
  }
  const auto entry =
      reinterpret_cast<kernelpath_provider_entry_function>(dlsym(library.get(), kEntryPoint));
  if (entry == nullptr) {
    return fail(provider_error(file, std::string("it has no function ") + kEntryPoint,
                               "see lib/registry/provider_abi.h for what a provider exports"));
  }
  const kernelpath_provider* provider = entry();
  if (provider == nullptr) return fail(provider_error(file, "its entry point returned null"));
  if (provider->abi_version != KERNELPATH_PROVIDER_ABI_VERSION) {
    return fail({.code = ErrorCode::kProviderAbi,
                 .message = "built for provider ABI " + std::to_string(provider->abi_version) +
                            ", this kernelpath has ABI " +
                            std::to_string(KERNELPATH_PROVIDER_ABI_VERSION),
                 .file = file,
                 .hint = "rebuild the provider with this version's provider_abi.h"});
  }
  KERNELPATH_TRY(started, start_provider(*provider, file));
  started.library = std::move(library);
  return std::move(started);
}

Result<std::vector<SharedObjectProvider>> load_provider_folders(
    std::span<const std::string> folders) {
  std::vector<SharedObjectProvider> providers;
  for (const std::string& folder : folders) {
    KERNELPATH_TRY(files, shared_objects_of(folder));
    for (const std::string& file : files) {
      KERNELPATH_TRY(provider, load_shared_object(file));
      for (const SharedObjectProvider& earlier : providers) {
        if (earlier.module != provider.module) continue;
        return fail(provider_error(
            file, "it provides the module " + provider.module + ", as " + earlier.file + " does"));
      }
      providers.push_back(std::move(provider));
    }
  }
  return providers;
}

}  // namespace kernelpath::registry
