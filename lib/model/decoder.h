#pragma once

#include "base/huge_memory.h"
#include "model/attention_layers.h"
#include "model/layers.h"
#include "model/load_weights.h"
#include "model/model.h"
#include "model/rank_ops.h"
#include "model/rope_table.h"
#include "model/spec.h"
#include "model/workspace.h"

#include <span>
#include <string_view>
#include <vector>

namespace kernelpath::model {

struct Pass;

// The decoder of every family.
class Decoder : public Model {
 public:
  // What a decoder is made of: of several ranks, this one's.
  struct Parts {
    DecoderSpec spec;
    Parameters parameters;  // without data
    AttentionLayers attention;
    comm::Placement ranks;
  };
  Decoder(Parts parts, kernels::Executor& executor);
  Decoder(const Decoder&) = delete;  // needs_ and the layers point into it
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() override = default;

  // Adds up what the weights of `files` take, from the headers. Errors as of build().
  Result<void> measure(const checkpoint::TensorFiles& files, int threads);
  // Reads the weights. Errors as of build().
  Result<void> load(const checkpoint::TensorFiles& files, int threads);

  [[nodiscard]] std::string_view class_name() const override { return spec_.family->class_name; }
  [[nodiscard]] std::int64_t vocab_size() const override { return spec_.vocab_size; }
  [[nodiscard]] std::int64_t max_positions() const override { return spec_.max_positions; }
  [[nodiscard]] std::span<const CacheRows> cache_rows() const override { return cache_rows_; }
  [[nodiscard]] bool rope_depends_on_length() const override;
  [[nodiscard]] bool has_state() const override { return spec_.delta.has_value(); }
  [[nodiscard]] WeightBytes weight_bytes() const override { return weight_bytes_; }
  [[nodiscard]] std::int64_t workspace_bytes(const StepSize& size) const override;
  [[nodiscard]] std::vector<TensorNeed> tensors() const override { return tensors_; }
  [[nodiscard]] std::span<const json::Warning> warnings() const override { return warnings_; }
  Result<void> forward(const Step& step, float* logits) override;

 private:
  [[nodiscard]] LoadRequest request(int threads) const;
  [[nodiscard]] Result<void> check(const Step& step) const;
  void fill_tables(const Step& step);
  void fill_rank_tables(const Step& step);
  [[nodiscard]] Result<void> prepare(const Step& step);
  void embed(const Pass& pass) const;
  void run(kernels::Ops& ops, const Step& step, float* logits);
  void project_logits(const Pass& pass, float* logits) const;
  void keep_biases_once();
  void make_expert_views();

  DecoderSpec spec_;
  AttentionLayers attention_;
  Parameters parameters_;
  std::vector<Need> needs_;  // points into parameters_
  std::vector<RopeTable> ropes_;
  std::vector<CacheRows> cache_rows_;
  std::vector<TensorNeed> tensors_;
  std::vector<json::Warning> warnings_;
  kernels::Executor& executor_;
  HugeMemory weights_;
  HugeMemory absorbed_;
  WeightBytes weight_bytes_;
  Workspace workspace_;
  RankOps ranks_;
  bool loaded_ = false;
};

}  // namespace kernelpath::model
