#pragma once

#include "base/result.h"
#include "registry/registration.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kernelpath::registry {

// An external provider that was loaded from a shared object (the interface is provider_abi.h).
struct SharedObjectProvider {
  std::string file;                         // path of the shared object
  std::string module;                       // full module name that it stands for
  std::vector<Registration> registrations;  // in the order it made them
  // Keeps the code in memory; the last copy unloads it.
  std::shared_ptr<void> library;
};

// Loads one shared object and runs its start. Runs the provider's code: a file that is not trusted
// must not be given.
// Errors: kProvider (not loadable, no entry point, no module name, a refused registration, its
// start failed), kProviderAbi (built for another version; nothing else of it was read).
Result<SharedObjectProvider> load_shared_object(const std::string& file);

// Loads every *.so of the folders: folders in the given order, files sorted by name.
// Errors: those of load_shared_object; kInputMissing, kInputKind, kInputPermission for a folder;
// kProvider for a folder without shared objects and for a module name that two files claim.
Result<std::vector<SharedObjectProvider>> load_provider_folders(
    std::span<const std::string> folders);

}  // namespace kernelpath::registry
