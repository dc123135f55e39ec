#pragma once

#include "base/result.h"
#include "engines/descriptor.h"
#include "engines/request.h"
#include "engines/resolution.h"
#include "json/value.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines {

// One rule of an engine, as data: what --explain, --sources, --list rules and the docs print.
struct RuleInfo {
  std::string_view id;       // "TRT-ATTN-FALLBACK"
  std::string_view summary;  // what happens, one sentence
  std::string_view why;      // the structural reason, one sentence
  std::string_view remedy;   // what to do; empty where nothing is wrong
  std::string_view file;     // of the engine
  std::string_view version;  // commit or date of that file
};

// A name in one of the engine's tables, with what there is to say of it.
struct TableRow {
  std::string name;
  std::vector<std::pair<std::string, std::string>> columns;
};

// An engine at one version: a pure function from a Request to a Resolution, and its tables.
class Engine {
 public:
  virtual ~Engine() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;     // "trtllm"
  [[nodiscard]] virtual std::string_view version() const = 0;  // "2026-11"
  // Every phrase is there.
  [[nodiscard]] virtual const Descriptor& descriptor() const = 0;

  // Never fails: a refusal of the engine is a Resolution with status and error.
  [[nodiscard]] virtual Resolution resolve(const Request& request) const = 0;

  // Checks --backend, --set, --lacks … against the engine's tables before a Request is resolved.
  // Error kUsageUnknown with near matches.
  [[nodiscard]] virtual Result<void> check(const Deployment& deployment,
                                           const Environment& environment) const = 0;

  // MODEL of the draft, whichever option or argument names it; nothing: none, or one that only
  // arguments which check() refuses would name.
  [[nodiscard]] virtual std::optional<std::string> draft_model(const Deployment& deployment) const {
    return deployment.draft_model;
  }

  // What refuses `backend` for this request, and the smallest changes that would admit it.
  struct WhyNot {
    bool admitted = false;
    std::vector<Step> refusals;
    struct Change {
      std::string option;  // "--device b200", "--has flashinfer"
      std::string effect;
    };
    std::vector<std::vector<Change>> remedies;  // smallest first; each set of changes was verified
  };
  [[nodiscard]] virtual Result<WhyNot> why_not(const Request& request,
                                               std::string_view backend) const = 0;

  // Answers the `in` of a --batch line whose op is one of the golden files' ("resolve",
  // "backend", or in.op). The answer has exactly the fields of the golden `out`.
  [[nodiscard]] virtual Result<json::Value> answer(std::string_view op,
                                                   const json::Value& in) const = 0;

  [[nodiscard]] virtual std::span<const RuleInfo> rules() const = 0;
  // "architectures", "backends", "packages", "settings", "variables", "spec-modes", …
  [[nodiscard]] virtual std::vector<std::string> table_kinds() const = 0;
  [[nodiscard]] virtual std::vector<TableRow> table(std::string_view kind) const = 0;
};

// Every engine version of this build, in the order of reports; the newest of an engine comes last
// among its own.
std::span<const Engine* const> all_engines();

// "trtllm" (the newest) or "trtllm@2026-11". Error kUsageUnknown with near matches or the versions
// that there are.
Result<const Engine*> find_engine(std::string_view name);

// Takes the tables of --profile-dir: of one engine version, or of those in its folders. They
// replace the embedded ones of their version, or add a version; for the life of the process, so
// call it before the first question. Errors: kInputMissing for a folder without a profile of any
// engine, kInputSchema, what reading a file gives.
Result<void> use_profile_folder(const std::string& folder);

}  // namespace kernelpath::engines
