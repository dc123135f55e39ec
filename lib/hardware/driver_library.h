#pragma once

#include <string>

namespace kernelpath::hardware {

// A driver's library, loaded at run time so that no build needs it. It stays loaded: drivers keep
// threads of their own.
class DriverLibrary {
 public:
  explicit DriverLibrary(const std::string& name);

  // Null pointer: the library is not there, or lacks the function.
  template <class Function>
  [[nodiscard]] Function function(const char* name) const {
    return reinterpret_cast<Function>(address(name));
  }
  [[nodiscard]] bool loaded() const { return handle_ != nullptr; }
  // Why it was not loaded; empty if it was.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  [[nodiscard]] void* address(const char* name) const;

  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace kernelpath::hardware
