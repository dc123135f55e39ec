#pragma once

#include "features/candidates.h"
#include "features/validate.h"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::features {

struct SuggestOptions {
  Scope scope = {};
  Level level = Level::kError;             // what must go away: this level and worse
  std::vector<DeviceChoice> devices = {};  // in order of preference
  std::size_t max_changes = 4;
  std::size_t max_validations = 20000;
  std::map<std::string, std::string> names = {};  // what the user calls an argument, by field
  // Recomputes facts that depend on arguments (memory per rank, resolved backend) after a change.
  std::function<void(Context&)> refresh = {};
};

// The smallest set of changes: fewest first, then fewest device and environment changes, then the
// order in which the conditions name them.
struct Suggestion {
  std::vector<Change> changes;
};

struct SuggestResult {
  std::optional<Suggestion> suggestion = {};  // verified by judging the changed combination
  bool searched_all = true;  // false: a limit stopped the search before it was complete
  bool smallest = true;      // false: put together rule by rule, a smaller set may exist
  std::size_t validations = 0;
};

// Changes after which `rule` holds no longer and nothing new of the level is found.
SuggestResult suggest_for(const Context& context, const Rule& rule, const SuggestOptions& options);

// Changes after which nothing of the level is found at all. Where the search for the smallest set
// meets its limit, the rules are mended one after the other.
SuggestResult suggest_all(const Context& context, const SuggestOptions& options);

// "--backend TRTLLM, leave out lora_config"; says so if there is none.
std::string suggestion_text(const SuggestResult& result, const SuggestOptions& options);

}  // namespace kernelpath::features
