#pragma once

#include "config/load.h"
#include "engines/vllm/engine.h"
#include "json/document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// One question to an embedded release, from configurations in a test.
namespace kernelpath::engines::vllm {

struct RunCase {
  std::string model;  // config.json
  std::string device = "h100-sxm";
  Deployment deployment = {};
  Environment environment = {};
  std::string draft = {};  // config.json of the draft; its name is in deployment.draft_model
};

inline config::ModelConfig read_config(const std::string& text) {
  auto document = json::parse_object(text, "config.json");
  EXPECT_TRUE(document.has_value());
  auto model = config::from_document(*document);
  EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().text());
  return model ? *model : config::ModelConfig{};
}

inline Resolution resolve_case(std::string_view version, const RunCase& asked) {
  const auto device =
      std::ranges::find(hardware::known_devices(), asked.device, &hardware::Device::id);
  if (device == hardware::known_devices().end()) {
    ADD_FAILURE() << "no such device: " << asked.device;
    return {};
  }
  Request request{.model = read_config(asked.model),
                  .device = *device,
                  .deployment = asked.deployment,
                  .environment = asked.environment};
  if (!asked.draft.empty()) {
    request.draft = std::make_shared<const config::ModelConfig>(read_config(asked.draft));
  }
  for (const Engine* engine : engines()) {
    if (engine->version() == version) return engine->resolve(request);
  }
  ADD_FAILURE() << "no such release: " << version;
  return {};
}

inline std::string code_of(const Resolution& resolution) {
  return resolution.error ? resolution.error->code : "none";
}

inline std::string option_of(const Resolution& resolution, std::string_view name) {
  const auto found = std::ranges::find(resolution.options, name, &Resolution::Option::name);
  return found == resolution.options.end() ? "absent" : found->value;
}

inline const Step* step_of(const Resolution& resolution, std::string_view rule) {
  const auto found = std::ranges::find(resolution.steps, rule, &Step::rule);
  return found == resolution.steps.end() ? nullptr : &*found;
}

// The first group of the draft's layers; a null pointer where there is none.
inline const LayerGroup* draft_of(const Resolution& resolution) {
  const auto found = std::ranges::find(resolution.layers, true, &LayerGroup::draft);
  return found == resolution.layers.end() ? nullptr : &*found;
}

inline std::pair<std::string, std::string> set(std::string name, std::string value) {
  return {std::move(name), std::move(value)};
}

}  // namespace kernelpath::engines::vllm
