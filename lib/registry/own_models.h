#pragma once

#include "registry/function_loader.h"
#include "registry/static_index.h"

#include <span>
#include <string_view>

// The model classes of kernelpath's own runtime: the built-in part of its registry, which the
// engine "kernelpath" resolves through and the runtime builds from.
namespace kernelpath::registry {

inline constexpr std::string_view kOwnPackage = "kernelpath.models";

struct OwnModel {
  std::string_view architecture;
  std::string_view module;  // short name: "llama"
  std::string_view class_name;
};

// Sorted by architecture.
std::span<const OwnModel> own_models();

// Whether a class of this name is built in: a provider can name any.
bool is_own_class(std::string_view class_name);

// architecture → module of kOwnPackage.
const StaticIndex& own_index();

// Loads the built-in modules: each registers its classes.
FunctionLoader own_loader();

}  // namespace kernelpath::registry
