// Every recorded choice of a CUDA kernel by llama.cpp, through answer_op().
#include "llamacpp_recorded.h"

namespace kernelpath::engines::llamacpp {
namespace {

TEST(LlamacppFattn, EveryRecordedAnswer_IsGiven) { expect_recorded_answers("fattn", 513); }

TEST(LlamacppFattn, ChangedRecording_IsNoticed) { expect_changes_noticed("fattn", ""); }

}  // namespace
}  // namespace kernelpath::engines::llamacpp
