#pragma once

#include "comm/placement.h"
#include "kernels/cpu/executor.h"
#include "kv/paged_storage.h"
#include "model/model.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kernelpath::golden {

// One request at a time through a model of tests/data/checkpoints, over pages in scattered order.
class CheckpointRunner {
 public:
  struct Options {
    int threads = 1;
    kernels::cpu::Isa isa = kernels::cpu::best_isa();
    std::int64_t page_size = 16;
    std::int64_t chunk = 1 << 20;  // tokens of a prompt in one step
    comm::Placement ranks = {};
  };

  static Result<std::unique_ptr<CheckpointRunner>> open(const std::string& folder,
                                                        const Options& options);

  [[nodiscard]] model::Model& model() { return *model_; }

  // The logits behind the prompt's last token; starts a new request.
  Result<std::vector<float>> prefill(std::span<const std::int32_t> prompt);
  // The logits behind one more token.
  Result<std::vector<float>> decode(std::int32_t token);

 private:
  explicit CheckpointRunner(const Options& options);
  Result<void> make_caches(const std::string& folder);
  Result<std::vector<float>> run(std::span<const std::int32_t> tokens);

  Options options_;
  kernels::cpu::CpuExecutor executor_;
  std::unique_ptr<model::Model> model_;
  std::vector<kv::PagedStorage> storage_;
  std::vector<std::vector<float>> states_;
  std::vector<model::LayerCache> caches_;
  std::vector<std::int32_t> block_table_;
  std::int32_t prompt_len_ = 0;
  std::int32_t length_ = 0;
};

}  // namespace kernelpath::golden
