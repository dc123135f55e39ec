#include "hardware/driver_library.h"

#include <dlfcn.h>

namespace kernelpath::hardware {

DriverLibrary::DriverLibrary(const std::string& name)
    : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* reason = dlerror();
  problem_ = reason != nullptr ? reason : name + " cannot be loaded";
}

void* DriverLibrary::address(const char* name) const {
  return handle_ != nullptr ? dlsym(handle_, name) : nullptr;
}

}  // namespace kernelpath::hardware
