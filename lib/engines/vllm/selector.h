#pragma once

#include "engines/vllm/profile.h"
#include "engines/vllm/selector_input.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// A backend that a plugin registered under a name of the enum, or since 0.33 under a new one.
struct RegisteredBackend {
  std::string name;
  std::string path;  // of its class
  // The member whose answers the class inherits; empty: those of the engine's base class.
  std::string inherits = {};
};

struct SelectorRequest {
  std::optional<std::string> backend = {};     // as the user wrote it
  std::optional<std::int64_t> num_heads = {};  // query heads of a rank; MLA layers say it
  SelectorConfig config = {};
  std::vector<RegisteredBackend> registered = {};
};

enum class SelectionFault : std::uint8_t {
  kUnknownName,    // no such member of the enum
  kNotRegistered,  // a placeholder without a class
  kInvalid,        // the requested backend cannot serve the layer
  kNoneValid,      // no candidate can
  kEngineFault,    // the engine raises while it looks at a candidate
  kPlatform,       // the platform cannot serve the layer at all
};

struct SelectionError {
  SelectionFault fault = SelectionFault::kInvalid;
  std::string stage;  // "config" (while the name is read) or "select"
  std::string type;   // "ValueError", "ValidationError", …
  std::string text;   // as the engine words it; <enum>, <reasons>, <config>, <rejected> and
                      // <enum names> stand for what the rest of the selection says
};

struct Rejected {
  std::string backend;  // member name
  std::vector<std::string> reasons;
  bool not_importable = false;
};

// Which backend serves a layer. Source: v1/attention/selector.py, platforms/{cuda,rocm,cpu}.py.
struct Selection {
  std::string member;   // of the enum; empty where nothing was chosen
  std::string backend;  // reported name
  std::string class_name;
  std::string path;
  const BackendClass* row = nullptr;  // null for a class that a plugin brought
  bool automatic = true;
  std::optional<SelectionError> error = {};
  std::vector<Rejected> rejected = {};      // in the order of the list, each with all its reasons
  std::vector<std::string> valid = {};      // automatic only: every candidate that would do
  std::vector<std::string> precluded = {};  // better ones that only --block-size ruled out
  std::optional<std::vector<std::string>> layouts = {};  // that it takes; nothing: any
};

Selection select_backend(const SelectorContext& context, const SelectorRequest& request);

// The order in which candidates are tried, before anything is known of them but their names.
const std::vector<std::string>& backend_priorities(const SelectorContext& context,
                                                   const SelectorRequest& request);

// The class that every backend inherits from, with its defaults. Source: v1/attention/backend.py.
const BackendClass& base_backend();

}  // namespace kernelpath::engines::vllm
