#pragma once

#include "base/result.h"
#include "config/model_config.h"
#include "json/document.h"

#include <string>
#include <string_view>

namespace kernelpath::config {

struct LoadOptions {
  bool strict = false;        // warnings that a careful reader would refuse become errors
  bool partial = false;       // a fragment (--batch): absent fields stay absent instead of errors
  bool read_siblings = true;  // hf_quant_config.json, generation_config.json, index, shard headers
};

// Reads MODEL: a folder, a config.json, a GGUF file, or "-" (`stdin_text` then holds the bytes).
// Errors: kInput…, kConfig…, kCheckpoint; each names file and place.
Result<ModelConfig> load_model(const std::string& path, const LoadOptions& options = {},
                               std::string_view stdin_text = {});

// The pure part: one parsed config.json → ModelConfig.
Result<ModelConfig> from_document(const json::Document& document, const LoadOptions& options = {});

// From a JSON object that is not a file of its own (the `config` of a --batch line).
Result<ModelConfig> from_value(const json::Value& object, const LoadOptions& options);

}  // namespace kernelpath::config
