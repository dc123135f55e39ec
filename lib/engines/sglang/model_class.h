#pragma once

#include "engines/sglang/launch.h"

#include <string>
#include <vector>

namespace kernelpath::engines::sglang {

// Which class serves a model. Source: model_loader/utils.py, models/registry.py.
struct ModelClass {
  std::string architecture = {};  // the class has the same name; empty after a refusal
  std::string module = {};
  std::string implementation = {};  // "sglang", "transformers", "mindspore"
  std::vector<Event> events = {};   // rewrites and warnings
  std::optional<ModelRefusal> refusal = {};
};

ModelClass resolve_model_class(const Launch& launch);

}  // namespace kernelpath::engines::sglang
