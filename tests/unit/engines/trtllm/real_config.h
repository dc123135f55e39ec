#pragma once

#include "config/load.h"
#include "engines/engine.h"
#include "hardware/device.h"

#include <gtest/gtest.h>

#include <string>

namespace kernelpath::engines::trtllm {

// A request about a bundled real config ("meta-llama__Meta-Llama-3.1-8B") on a known device.
inline Request real_request(const std::string& folder, const std::string& device = "h100-sxm") {
  auto model =
      config::load_model(std::string(KERNELPATH_TEST_DATA) + "/configs/" + folder + "/config.json");
  EXPECT_TRUE(model) << (model ? "" : model.error().text());
  return {.model = std::move(*model),
          .device = hardware::find_device(device).value(),
          .deployment = {},
          .environment = {}};
}

}  // namespace kernelpath::engines::trtllm
