#pragma once

#include "json/document.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::testing {

// The public cases of combinations that go wrong: the rows of cases.jsonl.
inline std::vector<json::Value> public_cases() {
  std::vector<json::Value> out;
  std::ifstream file(std::string(KERNELPATH_GOLDEN_DIR) + "/../cases/cases.jsonl");
  for (std::string line; std::getline(file, line);) {
    auto document = json::parse_object(line, "cases.jsonl");
    EXPECT_TRUE(document.has_value());
    if (document) out.push_back(std::move(document->root));
  }
  return out;
}

}  // namespace kernelpath::testing
