#pragma once

#include "config/model_config.h"

#include <cstdint>
#include <string>

namespace kernelpath::memory::testing {

// The numbers of a plain decoder; the rest of a ModelConfig follows from them.
struct Plain {
  std::string model_type = "llama";
  std::int64_t layers = 32;
  std::int64_t hidden = 4096;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 8;
  std::int64_t head_dim = 128;
  std::int64_t intermediate = 14336;
  std::int64_t vocab = 128256;
  bool tied = false;
};

// Defaults are those of Llama-3.1-8B: 8,030,261,248 parameters.
config::ModelConfig plain_model(const Plain& numbers = {});

config::IntField stated(std::int64_t value, const std::string& where = "/test");

}  // namespace kernelpath::memory::testing
