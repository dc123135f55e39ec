#pragma once

#include "json/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::json {

// The document of a text that must parse.
inline Document good(std::string_view text) {
  auto document = parse(std::string(text), "config.json");
  if (!document) {
    ADD_FAILURE() << document.error().text();
    return {};
  }
  return std::move(*document);
}

// The error of a text that must not parse.
inline Error bad(std::string_view text, const Limits& limits = {}) {
  auto document = parse(std::string(text), "config.json", limits);
  if (document) {
    ADD_FAILURE() << "accepted: " << document->root.brief(200);
    return {};
  }
  return document.error();
}

// Fails unless `text` is refused with this code, place and message.
inline void expect_bad(std::string_view text, ErrorCode code, std::string_view where,
                       std::string_view message_part) {
  const Error error = bad(text);
  EXPECT_EQ(error.code, code) << text.substr(0, 100);
  EXPECT_EQ(error.file, "config.json");
  EXPECT_EQ(error.where, where) << error.text();
  EXPECT_THAT(error.message, testing::HasSubstr(std::string(message_part)));
}

inline std::vector<std::string> codes(const Document& document) {
  std::vector<std::string> out;
  for (const Warning& warning : document.warnings) out.push_back(warning.code);
  return out;
}

}  // namespace kernelpath::json
