#pragma once

#include <span>
#include <string_view>

namespace kernelpath {

// What --version --verbose prints about this build. Link kernelpath::build_info, which is a target
// of its own: a new commit then rebuilds one small file and not every library.
struct BuildInfo {
  struct Library {
    std::string_view name;
    std::string_view version;  // "not found" for an optional one that is missing
  };
  std::string_view version;     // "0.1.0"
  std::string_view commit;      // abbreviated; "unknown" outside a git work tree
  std::string_view build_type;  // "Release"
  std::string_view compiler;    // "GNU 12.2.0"
  std::string_view sanitizers;  // "address,undefined"; "none"
  std::string_view cuda;        // toolkit version, "not found" or "off"
  std::span<const Library> libraries;
};

const BuildInfo& build_info();

}  // namespace kernelpath
