#pragma once

#include "base/result.h"

#include <string>
#include <utility>

namespace kernelpath::engines::deepinfer {

// What the engine raises. Most of its checks are assertions without a text, so `rule` names them.
struct Fault {
  std::string stage;      // of start-up: "args", "configs", "runner", "kernels", "build", …
  std::string type;       // "AssertionError"
  std::string text = {};  // as the engine words it; empty for a bare assertion
  // Our name of the check: "tokens-per-block-not-128"; empty where it has none.
  std::string rule = {};
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

namespace kernelpath {

// KERNELPATH_TRY and KERNELPATH_CHECK_OK pass on what a Checked holds by it.
inline tl::unexpected<engines::deepinfer::Fault> fail(engines::deepinfer::Fault fault) {
  return tl::unexpected(std::move(fault));
}

}  // namespace kernelpath
