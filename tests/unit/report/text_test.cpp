#include "base/text.h"

#include "report/blocks.h"
#include "report/inspect.h"
#include "sample_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(InspectText, Table_HasTheDocumentedColumns) {
  const std::string text = inspect_text(sample_answer(), {});
  EXPECT_THAT(text, HasSubstr("device h100-sxm (sm90, 80 GiB)   missing: flashinfer\n"));
  EXPECT_THAT(
      text,
      HasSubstr("engine  version  model class       attention backend  kv cache          fallback\n"
                "trtllm  2026-11  LlamaForCausalLM  TRTLLM             bf16 HND page 32  yes: "
                "FLASHINFER is not installed [TRT-ATTN-FALLBACK]\n"));
  EXPECT_THAT(text, HasSubstr("128 KiB of KV per token; 131072 tokens = 16 GiB a sequence\n"));
  EXPECT_THAT(text, HasSubstr("warn  trtllm: attention falls back\n"));
}

TEST(InspectText, Batch_IsSummedUp) {
  InputAnswer answer = sample_answer();
  engines::Memory& memory = answer.engines[0].resolution.memory;
  memory.batch_sequences = 8;
  memory.kv_bytes_per_batch = 8 * *memory.kv_bytes_per_sequence;
  EXPECT_THAT(inspect_text(answer, {}), HasSubstr("16 GiB a sequence, 128 GiB of 8 sequences\n"));
  EXPECT_THAT(inspect_text(answer, {.show = {"memory"}}), HasSubstr("KV of 8 sequences"));
}

TEST(InspectText, ControlBytesOfAFile_AreNeverRaw) {
  InputAnswer answer = sample_answer();
  answer.model.name = "a\x1b]0;b\x07";
  answer.engines[0].resolution.model_class = "C\x1b[2J";
  for (const std::string& text : {inspect_text(answer, {.layers = true, .why = true}),
                                  inspect_markdown(answer, {.layers = true, .why = true})}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x07'), std::string::npos);
  }
}

TEST(InspectText, Color_IsOnTopOfTheSameWords) {
  const InputAnswer answer = sample_answer();
  std::string colored = inspect_text(answer, {.color = true});
  EXPECT_THAT(colored, HasSubstr("\x1b[33m"));
  for (std::size_t at = colored.find('\x1b'); at != std::string::npos;
       at = colored.find('\x1b', at)) {
    colored.erase(at, colored.find('m', at) - at + 1);
  }
  EXPECT_EQ(colored, inspect_text(answer, {}));
}

TEST(InspectText, Why_FollowsTheTroubleshootingOrder) {
  const std::string text = inspect_text(sample_answer(), {.why = true});
  const std::size_t model_class = text.find("Model class\n");
  const std::size_t value = text.find("1. Final value");
  const std::size_t fallback = text.find("2. Fallback");
  ASSERT_NE(fallback, std::string::npos);
  EXPECT_LT(model_class, value);
  EXPECT_LT(value, fallback);
  EXPECT_THAT(text, HasSubstr("attn_backend = FLASHINFER  (user)\n"));
  // The number is the engine's order: the final value was decided last here.
  EXPECT_THAT(text.substr(value, fallback - value), HasSubstr("3  TRT-VALUE"));
  EXPECT_THAT(text, Not(HasSubstr("utils.py")));
  EXPECT_THAT(inspect_text(sample_answer(), {.why = true, .sources = true}),
              HasSubstr("(TensorRT-LLM utils.py @ abc)"));
}

TEST(InspectText, Layers_ShowGroupsAndThePhaseAsked) {
  const std::string both = inspect_text(sample_answer(), {.layers = true});
  EXPECT_THAT(both,
              HasSubstr("0-2,5   full  4096    TrtllmAttention  FMHA     XQA (when it fits)"));
  const std::string decode = inspect_text(sample_answer(), {.prefill = false, .layers = true});
  EXPECT_THAT(decode, Not(HasSubstr("FMHA")));
  EXPECT_THAT(decode, HasSubstr("XQA"));
}

TEST(InspectText, Width_WrapsTheLastColumnOnly) {
  const std::string text = inspect_text(sample_answer(), {.width = 100});
  for (const std::string& line : split(text, '\n')) EXPECT_LE(line.size(), 100) << line;
  EXPECT_THAT(text, HasSubstr("\n" + std::string(72, ' ')));
}

TEST(InspectText, UnsupportedModel_SaysWhatIsNear) {
  InputAnswer answer = sample_answer();
  engines::Resolution& resolution = answer.engines[0].resolution;
  resolution.status = engines::Status::kUnsupported;
  resolution.model_class.clear();
  resolution.error =
      engines::EngineError{"ValueError", "UNKNOWN-ARCH", "unknown architecture", {"LlamaX"}};
  EXPECT_THAT(inspect_text(answer, {}),
              HasSubstr("unsupported: unknown architecture [UNKNOWN-ARCH]; near: LlamaX"));
}

TEST(InspectText, WhyNot_ListsRefusalsAndRemedies) {
  InputAnswer answer = sample_answer();
  answer.engines[0].why_not_backend = "FLASHINFER";
  engines::Engine::WhyNot why_not;
  why_not.refusals = {answer.engines[0].resolution.steps[1]};
  why_not.remedies = {{{"--has flashinfer", "the package is there"}}};
  answer.engines[0].why_not = why_not;
  const std::string text = inspect_text(answer, {});
  EXPECT_THAT(text, HasSubstr("trtllm 2026-11: why not FLASHINFER\n"));
  EXPECT_THAT(text, HasSubstr("do: --has flashinfer (the package is there)\n"));
  answer.engines[0].why_not =
      engines::Engine::WhyNot{.admitted = true, .refusals = {}, .remedies = {}};
  EXPECT_THAT(inspect_text(answer, {}), HasSubstr("it is admitted"));
}

TEST(InspectMarkdown, Table_EscapesWhatWouldBreakIt) {
  InputAnswer answer = sample_answer();
  answer.engines[0].resolution.model_class = "A|B_C *d* _e_";
  const std::string text = inspect_markdown(answer, {});
  EXPECT_THAT(text, HasSubstr("| engine | version | model class |"));
  EXPECT_THAT(text, HasSubstr("| A\\|B_C \\*d\\* \\_e\\_ |"));
}

TEST(RenderHtml, Blocks_AreEscapedElements) {
  Block table;
  table.kind = Block::Kind::kTable;
  table.header = {"a<b", "c"};
  table.rows = {{{"x & y", Tone::kBad}, {"z"}}};
  const std::string html = render_html("t\"", {title_block("one"), table, line_block("end")});
  EXPECT_THAT(html, HasSubstr("<title>t&quot;</title>"));
  EXPECT_THAT(html, HasSubstr("<h1>one</h1>\n<table>\n<tr><th>a&lt;b</th><th>c</th></tr>\n"
                              "<tr><td class=\"bad\">x &amp; y</td><td>z</td></tr>\n</table>\n"
                              "<p>end</p>\n</body>"));
}

}  // namespace
}  // namespace kernelpath::report
