#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::registry {

// Which runtime registry a registration fills.
enum class Kind : std::uint8_t {
  kModelClass,     // architecture → class
  kVisionEncoder,  // architecture → encoder class, with an optional base class
  kDraftBuilder,   // speculative mode → builder of the draft model
};
std::string_view kind_name(Kind kind);  // "model class", "vision encoder", "draft builder"

// What stands in a slot: a class or a builder, by name. Two are the same if all parts are.
struct Provider {
  std::string module;                          // full name of the module that registered it
  std::string name;                            // of the class or builder
  std::optional<std::string> base_class = {};  // of a vision encoder that has one

  [[nodiscard]] std::string qualified_name() const { return module + "." + name; }
  friend bool operator==(const Provider&, const Provider&) = default;
};

// One call of a decorator, as a module makes it while it is loaded.
struct Registration {
  Kind kind = Kind::kModelClass;
  // Architecture or speculative mode. Empty for a vision encoder that belongs to every architecture
  // that `model_class` declared before.
  std::string key = {};
  std::string name = {};                       // class, encoder class or builder
  std::optional<std::string> base_class = {};  // kVisionEncoder
  std::string model_class = {};                // kVisionEncoder with an empty key
};

// Why a module could not be loaded, or a name not be found.
enum class FailureKind : std::uint8_t {
  kModuleNotFound,  // `name` is the module that is not there: the one asked for, or another one
  kAttributeError,  // the module's own code failed on an attribute
  kImportError,     // the same, seen through attribute access on the package
  kNoAttribute,     // the package has no such class and no such submodule
  kRegistration,    // a registration that no registry can take
  kStartFailed,     // the module's start reported an error
};

struct Failure {
  FailureKind kind = FailureKind::kModuleNotFound;
  std::string name = {};     // of the missing module, attribute or class
  std::string message = {};  // one sentence
};

}  // namespace kernelpath::registry
