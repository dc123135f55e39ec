#include "base/error.h"

#include "base/assert.h"
#include "base/text.h"

#include <array>

namespace kernelpath {
namespace {

constexpr std::array kErrors = {
    ErrorInfo{ErrorCode::kUsage, "USAGE", 2, "usage",
              "The command line has an option or a value that this program does not accept."},
    ErrorInfo{ErrorCode::kUsageUnknown, "USAGE-UNKNOWN", 2, "usage",
              "A name is in none of the tables that were asked; near matches are shown, and --list "
              "prints the whole table. A name is never guessed."},
    ErrorInfo{ErrorCode::kUsageConflict, "USAGE-CONFLICT", 2, "usage",
              "Two options exclude each other or state two values for one thing."},
    ErrorInfo{ErrorCode::kInputMissing, "INPUT-MISSING", 3, "input",
              "The file or folder does not exist; no default configuration is ever used instead."},
    ErrorInfo{
        ErrorCode::kInputKind, "INPUT-KIND", 3, "input",
        "The input is not of a kind that can be read: a folder without config.json, a FIFO or "
        "device, an HTML page, a Git LFS pointer."},
    ErrorInfo{ErrorCode::kInputPermission, "INPUT-PERMISSION", 3, "input",
              "The system refused to open or read the file."},
    ErrorInfo{ErrorCode::kInputLimit, "INPUT-LIMIT", 3, "input",
              "The input is longer, deeper or larger than the documented limits (docs/limits.md)."},
    ErrorInfo{ErrorCode::kInputEncoding, "INPUT-ENCODING", 3, "input",
              "The file is not valid UTF-8."},
    ErrorInfo{ErrorCode::kInputJson, "INPUT-JSON", 3, "input",
              "The file is not JSON in the dialect that the Python engines read."},
    ErrorInfo{ErrorCode::kInputChanged, "INPUT-CHANGED", 3, "input",
              "The file changed while it was being read; run the command again."},
    ErrorInfo{ErrorCode::kInputSchema, "INPUT-SCHEMA", 3, "input",
              "A table or profile file has a schema that this version does not know."},
    ErrorInfo{ErrorCode::kConfigValue, "CONFIG-VALUE", 3, "input",
              "A field of the model's configuration holds a value that no model can have."},
    ErrorInfo{ErrorCode::kConfigType, "CONFIG-TYPE", 3, "input",
              "A field of the model's configuration has the wrong JSON type."},
    ErrorInfo{ErrorCode::kConfigMissing, "CONFIG-MISSING", 3, "input",
              "The model's configuration lacks a field that the question needs."},
    ErrorInfo{ErrorCode::kConfigOverflow, "CONFIG-OVERFLOW", 3, "input",
              "A product of sizes in the model's configuration does not fit 64 bits."},
    ErrorInfo{ErrorCode::kCheckpoint, "CHECKPOINT", 3, "input",
              "A weights file or its index is broken, or names a file outside its folder."},
    ErrorInfo{ErrorCode::kBatchRequest, "BATCH-REQUEST", 1, "finding",
              "A line of --batch could not be answered; the other lines were."},
    ErrorInfo{ErrorCode::kProvider, "PROVIDER", 3, "input",
              "An external provider (--custom-module-dirs) failed while it was loaded."},
    ErrorInfo{ErrorCode::kProviderAbi, "PROVIDER-ABI", 3, "input",
              "An external provider was built for another version of the provider interface."},
    ErrorInfo{ErrorCode::kUnavailable, "UNAVAILABLE", 4, "unavailable",
              "The request was understood, but this build or this machine cannot do it."},
    ErrorInfo{ErrorCode::kResource, "RESOURCE", 5, "resource",
              "Memory or another limit of this process was reached."},
    ErrorInfo{ErrorCode::kRuntime, "RUNTIME", 6, "runtime",
              "Reading or writing failed while the program was running."},
    ErrorInfo{ErrorCode::kInternal, "INTERNAL", 70, "internal",
              "A bug in kernelpath: an invariant of its own was broken. Please report it."},
};

}  // namespace

std::span<const ErrorInfo> error_table() { return kErrors; }

const ErrorInfo& error_info(ErrorCode code) {
  const auto index = static_cast<std::size_t>(code);
  KERNELPATH_ASSERT(index < kErrors.size() && kErrors[index].code == code);
  return kErrors[index];
}

const ErrorInfo* find_error_info(std::string_view id) {
  for (const ErrorInfo& info : kErrors) {
    if (equal_ignoring_case(info.id, id)) return &info;
  }
  return nullptr;
}

std::string Error::text() const {
  std::string out;
  if (!file.empty()) out += escape_for_terminal(file) + ": ";
  if (!where.empty()) out += escape_for_terminal(where) + ": ";
  out += escape_for_terminal(message);
  if (!value.empty()) out += " (" + escape_for_terminal(value) + ")";
  return out;
}

}  // namespace kernelpath
