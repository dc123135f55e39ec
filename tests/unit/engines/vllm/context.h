#pragma once

#include "engines/vllm/selector.h"

#include <string_view>

// A question to the selector with everything that the rules look at in one place.
namespace kernelpath::engines::vllm {

struct Asked {
  explicit Asked(std::string_view version, int major = 9, int minor = 0)
      : profile(built_in_profile(version)) {
    machine.capability = {.major = major, .minor = minor};
    request.config.head_size = 128;
  }

  [[nodiscard]] SelectorContext context() const {
    return {.profile = profile, .machine = machine, .settings = settings};
  }
  [[nodiscard]] Selection select() const { return select_backend(context(), request); }

  const Profile& profile;
  Machine machine;
  SelectorSettings settings;
  SelectorRequest request;
};

}  // namespace kernelpath::engines::vllm
