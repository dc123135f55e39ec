#pragma once

#include "config/model_config.h"
#include "hardware/device.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines {

// What the user decides. Unset means: the engine's own default.
struct Deployment {
  std::optional<std::string> backend;  // --backend, as written
  std::optional<std::string> dtype;
  std::optional<std::string> kv_dtype;  // --kv
  std::optional<std::string> quantization;
  std::optional<std::int64_t> page_size;
  std::optional<std::int64_t> max_model_len;
  std::optional<std::int64_t> batch_size;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t ep = 1;
  std::int64_t cp = 1;
  std::int64_t dcp = 1;
  std::optional<std::string> speculative;  // "eagle3", "mtp", …
  std::optional<std::string> draft_model;  // of --speculative draft:MODEL
  std::optional<std::int64_t> draft_tokens;
  std::optional<std::int64_t> draft_topk;
  // --set ENGINE.FIELD=VALUE for the engine asked, without the engine's name: dotted field, value
  // as written. Checked against the engine's table of arguments before a Request is made.
  std::vector<std::pair<std::string, std::string>> settings;
  [[nodiscard]] const std::string* setting(std::string_view field) const;
};

// What is installed and what the engine's process would see.
struct Environment {
  std::vector<std::string> lacks;  // packages, lower case
  std::vector<std::string> has;    // packages that the engine version does not declare itself
  std::vector<std::pair<std::string, std::string>> variables;  // --env NAME=VALUE
  [[nodiscard]] const std::string* variable(std::string_view name) const;
  // True unless `package` is in `lacks`; for packages that are off by default, true if in `has`.
  [[nodiscard]] bool available(std::string_view package, bool by_default = true) const;
  // What external model providers register, in load order. A row holds a class for an architecture,
  // or a vision encoder for one, or a draft builder for a speculative mode; the rest stays empty.
  struct ExternalModel {
    std::string module;
    std::string architecture = {};
    std::string model_class = {};
    std::string vision_encoder = {};
    std::string vision_base_class = {};  // of the encoder, where it has one
    std::string speculative_mode = {};
    std::string draft_builder = {};
  };
  std::vector<ExternalModel> external_models;
};

struct Request {
  config::ModelConfig model;
  hardware::Device device;
  Deployment deployment;
  Environment environment;
  // The model of Engine::draft_model(), where it could be read; a null pointer otherwise.
  std::shared_ptr<const config::ModelConfig> draft = nullptr;
};

}  // namespace kernelpath::engines
