#pragma once

#include "base/result.h"
#include "cli/settings.h"
#include "json/value.h"

#include <string>
#include <vector>

// What a line of --batch asks.

namespace kernelpath::cli {

// The engine of a line that has "in": its "engine", else --engine; one, not several.
Result<std::string> batch_engine(const json::Value& request, const Settings& settings);

// The line's "op", else that of its "in".
Result<std::string> batch_op(const json::Value& request, const json::Value& in);

struct BatchSettings {
  Settings settings;                        // the command line's with the line's fields over them
  std::vector<std::string> ignored_fields;  // neither options nor labels
};

// The settings of a line that has "model". Errors: kUsage… with the field in `where`.
Result<BatchSettings> batch_settings(const json::Value& request, const Settings& base);

}  // namespace kernelpath::cli
