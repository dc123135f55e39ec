// Every recorded size of llama.cpp's caches and states, through answer_op().
#include "llamacpp_recorded.h"

namespace kernelpath::engines::llamacpp {
namespace {

TEST(LlamacppKvSize, EveryRecordedAnswer_IsGiven) { expect_recorded_answers("kv_size", 439); }

TEST(LlamacppKvSize, ChangedRecording_IsNoticed) { expect_changes_noticed("kv_size", "log notes"); }

}  // namespace
}  // namespace kernelpath::engines::llamacpp
