// Where layers and the parts of split tensors go. Numbers by hand from load_tensors() and
// llama_meta_device_get_split_state() of llama.cpp 0c1e5709.
#include "engines/llamacpp/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines::llamacpp {
namespace {

using testing::Each;
using testing::ElementsAre;

Hparams layers(std::int64_t count) {
  Hparams out;
  out.n_layer_all = count;
  out.n_embd_head_k_full = 128;
  out.n_embd_head_v_full = 128;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    out.n_head_arr[i] = 32;
    out.n_head_kv_arr[i] = 8;
  }
  return out;
}

Arguments on_gpus(std::int64_t devices, SplitMode mode = SplitMode::kLayer) {
  Arguments out;
  out.split.mode = mode;
  out.split.devices = devices;
  return out;
}

TEST(LlamacppPlacement, EqualGpus_ShareLayersAndTheOutputLayerByPlace) {
  // Places 0, 0.2, 0.4 lie below one half; 0.6 and the output layer's 0.8 do not.
  const Placement out = place_layers(layers(4), on_gpus(2), 80);
  EXPECT_THAT(out.layers, ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(out.output, 1);
}

TEST(LlamacppPlacement, Shares_MoveTheBorder) {
  Arguments arguments = on_gpus(2);
  arguments.split.shares = {1, 3};
  EXPECT_THAT(place_layers(layers(4), arguments, 80).layers, ElementsAre(0, 0, 1, 1));
  arguments.split.shares = {3};  // the second GPU gets nothing
  const Placement all_first = place_layers(layers(4), arguments, 80);
  EXPECT_THAT(all_first.layers, Each(0));
}

TEST(LlamacppPlacement, FewerLayersOnGpus_LeaveTheFirstOnTheHost) {
  Arguments arguments = on_gpus(1);
  arguments.split.n_gpu_layers = 3;
  const Placement some = place_layers(layers(4), arguments, 80);
  EXPECT_THAT(some.layers, ElementsAre(kHost, kHost, 0, 0));
  EXPECT_EQ(some.output, 0);
  arguments.split.n_gpu_layers = 99;
  EXPECT_THAT(place_layers(layers(4), arguments, 80).layers, Each(0));
  arguments.on_devices = false;
  const Placement none = place_layers(layers(4), arguments, 80);
  EXPECT_THAT(none.layers, Each(kHost));
  EXPECT_EQ(none.output, kHost);
}

TEST(LlamacppPlacement, ModeNone_UsesOneGpu) {
  const Placement out = place_layers(layers(4), on_gpus(4, SplitMode::kNone), 80);
  EXPECT_EQ(out.devices, 1);
  EXPECT_THAT(out.layers, Each(0));
}

TEST(LlamacppPlacement, ModeTensor_PutsEveryLayerOnAllGpus) {
  const Placement out = place_layers(layers(4), on_gpus(4, SplitMode::kTensor), 80);
  EXPECT_TRUE(out.tensor_split);
  EXPECT_THAT(out.layers, Each(0));
}

TEST(LlamacppSplit, Rows_AreRoundedToStepsAndTheLastGpuGetsTheRest) {
  const SplitParams three = on_gpus(3, SplitMode::kTensor).split;
  EXPECT_THAT(split_row({1024, 128, 0}, three), ElementsAre(256, 384, 384));
  EXPECT_THAT(split_row({1024, 128, 1}, three), ElementsAre(384, 256, 384));
}

TEST(LlamacppSplit, Heads_GoWithTheRowsOfTheOutputProjection) {
  const SplitHeads out = split_heads(layers(1), 0, 32, on_gpus(2, SplitMode::kTensor).split);
  EXPECT_THAT(out.k, ElementsAre(512, 512));
  EXPECT_THAT(out.v, ElementsAre(512, 512));
  // Eight heads over three GPUs: no head is cut.
  const SplitHeads three = split_heads(layers(1), 0, 32, on_gpus(3, SplitMode::kTensor).split);
  EXPECT_THAT(three.k, ElementsAre(256, 384, 384));
}

}  // namespace
}  // namespace kernelpath::engines::llamacpp
