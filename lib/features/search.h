#pragma once

#include "features/candidates.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::features {

using Changes = std::vector<Change>;

// The same for the same changes in any order.
std::string key_of(const Changes& changes);

// A combination with faults, and the changes that could remove them.
class Problem {
 public:
  Problem() = default;
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;
  Problem(Problem&&) = delete;
  Problem& operator=(Problem&&) = delete;
  virtual ~Problem() = default;

  // What is wrong after the changes, in the order of reports; a fault has the same name in every
  // combination. Nothing: the changes cannot be stated together.
  [[nodiscard]] virtual std::optional<std::vector<std::string>> faults(
      const Changes& changes) const = 0;
  // The changes that could remove `fault` where it stands after `changes`, in the order to try.
  [[nodiscard]] virtual Changes remedies(const Changes& changes,
                                         const std::string& fault) const = 0;
};

struct SearchLimits {
  std::size_t max_changes = 4;
  std::size_t max_combinations = 2000;  // looked at
};

struct SearchResult {
  std::optional<Changes> changes = {};  // the combination was looked at after them
  bool searched_all = true;             // false: a limit stopped the search before it was complete
  bool smallest = true;                 // false: nobody looked whether fewer changes would do
  std::size_t combinations = 0;
};

// The fewest changes after which the fault `target` is gone and no other is new. Ties: fewer
// changes of the device, then of the environment, then the order of remedies().
SearchResult search_for(const Problem& problem, const std::string& target,
                        const SearchLimits& limits);

// The fewest changes after which no fault is left.
SearchResult search_all(const Problem& problem, const SearchLimits& limits);

// "--backend TRTLLM, leave out lora_config"; says so if there is none.
std::string search_text(const SearchResult& result, const SearchLimits& limits);

}  // namespace kernelpath::features
