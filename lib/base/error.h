#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath {

// The closed list of what can go wrong. Each member has a stable code in brackets for users
// ("INPUT-JSON"), one sentence that --explain prints, and an exit code; see error_info().
enum class ErrorCode : std::uint8_t {
  kUsage,            // wrong options
  kUsageUnknown,     // a name that no table holds (engine, backend, device, package, field …)
  kUsageConflict,    // options that exclude each other
  kInputMissing,     // no such file or folder
  kInputKind,        // a folder without config.json, a FIFO, an HTML page, a Git LFS pointer …
  kInputPermission,  // the system refused to read it
  kInputLimit,       // longer, deeper or larger than the documented limits
  kInputEncoding,    // not UTF-8
  kInputJson,        // not JSON, or JSON that the Python engines refuse as well
  kInputChanged,     // the file changed while it was read
  kInputSchema,      // a profile or table file of an unknown schema
  kConfigValue,      // a field holds a value that no model can have
  kConfigType,       // a field holds a value of the wrong JSON type
  kConfigMissing,    // a field that the question needs is absent
  kConfigOverflow,   // a product of sizes does not fit 64 bits
  kCheckpoint,       // a safetensors file or index is broken or points outside its folder
  kBatchRequest,     // a line of --batch that cannot be answered
  kProvider,         // an external provider failed while loading
  kProviderAbi,      // an external provider built for another ABI version
  kUnavailable,      // understood, but this build or machine cannot do it
  kResource,         // out of memory or another limit of this process
  kRuntime,          // I/O failed while running
  kInternal,         // a broken invariant of kernelpath itself: please report it
};

// What a user needs to know about an error code.
struct ErrorInfo {
  ErrorCode code;
  std::string_view id;        // "INPUT-JSON"
  int exit_code;              // see docs: 1 finding, 2 usage, 3 input, 4 unavailable, 5, 6, 70
  std::string_view name;      // the exit code's name in JSON: "input"
  std::string_view sentence;  // what --explain prints
};

// All codes in declaration order.
std::span<const ErrorInfo> error_table();
const ErrorInfo& error_info(ErrorCode code);
// The entry whose id is `id` (any case), or nothing.
const ErrorInfo* find_error_info(std::string_view id);

// One error as it reaches the user:
//   PROGRAM: error[ID]: FILE: WHERE: MESSAGE (VALUE)
//     hint: HINT
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message = {};  // what was found and what is allowed, without file and place
  std::string file = {};     // the input at fault, as the user named it; empty if there is none
  std::string where =
      {};  // line:column for syntax, JSON pointer for a value, byte offset or tensor
  std::string value = {};  // the offending value, escaped and shortened; empty if there is none
  std::string hint = {};   // what to do; empty if nothing useful can be said
  std::vector<std::string> near_matches = {};  // for unknown names

  // "FILE: WHERE: MESSAGE (VALUE)"; every part escaped for a terminal.
  [[nodiscard]] std::string text() const;
};

}  // namespace kernelpath
