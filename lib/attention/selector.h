#pragma once

#include "attention/layer_request.h"
#include "base/result.h"

#include <deque>
#include <string>
#include <vector>

namespace kernelpath::attention {

// What a selection depends on, and all of it.
struct SelectorKey {
  LayerRequest layer = {};
  std::string backend = {};  // as the user wrote it; empty: the first that can

  friend bool operator==(const SelectorKey&, const SelectorKey&) = default;
};

// A backend that was asked, with what speaks against it; none: it can.
struct Candidate {
  const BackendRow* row = nullptr;
  std::vector<Refusal> refusals = {};
};

struct Selection {
  const BackendRow* chosen = nullptr;      // null: every candidate was refused
  std::vector<Candidate> candidates = {};  // in the order in which they were asked
  // The name that stood for another engine's backend; empty: a name of this library.
  std::string alias = {};
};

// Selects the backend of a layer: the named one, or the first of the table that can. A pure
// function of its key. A named backend that is refused is not replaced: its reasons are the answer.
// Errors: kUsageUnknown for a name that is none (with near matches and all names), kConfigValue for
// a layer whose own sizes do not go together.
Result<Selection> select(const SelectorKey& key);

// The backend that `name` (any case) stands for. Error: kUsageUnknown.
struct NamedBackend {
  BackendId id = BackendId::kFused;
  bool alias = false;
};
Result<NamedBackend> find_backend(std::string_view name);

// Remembers answers by the value of their keys: a changed key is another question.
class Selector {
 public:
  const Result<Selection>& select(const SelectorKey& key);
  [[nodiscard]] std::size_t size() const { return answers_.size(); }

 private:
  struct Answer {
    SelectorKey key;
    Result<Selection> selection;
  };
  std::deque<Answer> answers_;  // whose elements stay where they are
};

}  // namespace kernelpath::attention
