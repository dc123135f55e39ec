#pragma once

#include "base/result.h"

#include <string>

namespace kernelpath::engines::deepinfer {

// What the engine raises. Most of its checks are assertions without a text, so `rule` names them.
struct Fault {
  std::string stage;      // of start-up: "args", "configs", "runner", "kernels", "build", …
  std::string type;       // "AssertionError"
  std::string text = {};  // as the engine words it; empty for a bare assertion
  std::string rule =
      {};  // our name of the check: "tokens-per-block-not-128"; empty where it has none
};

template <class Value>
using Checked = tl::expected<Value, Fault>;

inline tl::unexpected<Fault> raise(Fault fault) { return tl::unexpected(std::move(fault)); }

// A bare `assert` of the engine.
inline tl::unexpected<Fault> refuse(std::string stage, std::string rule, std::string text = {}) {
  return raise({.stage = std::move(stage),
                .type = "AssertionError",
                .text = std::move(text),
                .rule = std::move(rule)});
}

}  // namespace kernelpath::engines::deepinfer

// Checked's counterparts of KERNELPATH_TRY and KERNELPATH_CHECK_OK.
#define DEEPINFER_TRY_INNER(name, expression, temporary)                 \
  auto temporary = (expression);                                         \
  if (!temporary) return ::tl::unexpected(std::move(temporary).error()); \
  auto& name = *temporary
#define DEEPINFER_TRY(name, expression) \
  DEEPINFER_TRY_INNER(name, expression, KERNELPATH_CONCAT(checked_, __LINE__))
#define DEEPINFER_CHECK(expression)                                                \
  do {                                                                             \
    auto checked_value = (expression);                                             \
    if (!checked_value) return ::tl::unexpected(std::move(checked_value).error()); \
  } while (false)
