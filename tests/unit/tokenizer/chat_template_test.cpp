#include "tokenizer/chat_template.h"

#include "recorded.h"
#include "tokenizer/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::tokenizer {
namespace {

using testing::HasSubstr;

json::Value parsed(const std::string& text) { return json::parse(text, "test").value().root; }

ChatRequest hello() {
  ChatRequest request;
  request.messages = parsed(R"([{"role": "user", "content": "Hé <b>\u2028"}])");
  return request;
}

// Tests of rendering need python3 with Jinja2, which is an optional package.
class Render : public testing::Test {
 protected:
  Result<std::string> render(const std::string& text, const ChatRequest& request = hello(),
                             const RenderLimits& limits = {}) {
    const ChatTemplate chat_template{.name = "default",
                                     .text = text,
                                     .file = "tokenizer_config.json",
                                     .where = "/chat_template"};
    const SpecialTokens special{.named = {{.key = "bos_token", .content = "<s>", .id = 1}},
                                .bos = 1,
                                .eos = {},
                                .pad = {},
                                .unk = {}};
    return render_chat(chat_template, special, request, limits);
  }

  void SetUp() override {
    const auto probe = render("ok");
    if (!probe && probe.error().code == ErrorCode::kUnavailable) {
      GTEST_SKIP() << probe.error().text();
    }
  }
};

TEST_F(Render, Variables_ArePassed) {
  ChatRequest request = hello();
  request.variables = {{.key = "thinking", .value = json::Value::boolean(true)},
                       {.key = "bos_token", .value = json::Value::string("<B>")}};
  EXPECT_EQ(render("{{ bos_token }}|{{ thinking }}|{{ tools is none }}|{{ nothing is defined }}|"
                   "{{ add_generation_prompt }}|{{ messages[0].content }}",
                   request)
                .value(),
            "<B>|True|True|False|True|Hé <b>\u2028");
  EXPECT_EQ(render("{{ bos_token }}").value(), "<s>");
}

TEST_F(Render, Json_IsNotEscapedForHtml) {
  EXPECT_EQ(render("{{ messages[0] | tojson }}").value(),
            "{\"role\": \"user\", \"content\": \"Hé <b>\u2028\"}");
  EXPECT_EQ(render("{{ {'b': 1, 'a': [2]} | tojson(indent=1, sort_keys=true) }}").value(),
            "{\n \"a\": [\n  2\n ],\n \"b\": 1\n}");
}

TEST_F(Render, Blocks_AreTrimmedAndLoopsMayBeLeft) {
  EXPECT_EQ(render("a\n  {% for i in [1, 2, 3] %}\n{% if i == 2 %}{% break %}{% endif %}\n{{ i }}\n"
                   "  {% endfor %}\nb")
                .value(),
            "a\n1\nb");
  EXPECT_EQ(render("{% generation %}x{% endgeneration %}").value(), "x");
}

TEST_F(Render, Time_IsThatOfTheClock) {
  EXPECT_THAT(render("{{ strftime_now('%Y') }}").value(), testing::MatchesRegex("20[0-9][0-9]"));
}

TEST_F(Render, RaiseException_IsTheErrorWithThePlaceOfTheTemplate) {
  const auto failed = render("{{ raise_exception('Roles must alternate') }}");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kConfigValue);
  EXPECT_EQ(failed.error().file, "tokenizer_config.json");
  EXPECT_EQ(failed.error().where, "/chat_template");
  EXPECT_THAT(failed.error().message, testing::EndsWith(": Roles must alternate"));
  EXPECT_THAT(render("{{ messages[0].content + 1 }}").error().message, HasSubstr("TypeError"));
}

TEST_F(Render, SyntaxError_HasItsLine) {
  const auto failed = render("a\n{% if %}");
  ASSERT_FALSE(failed.has_value());
  EXPECT_THAT(failed.error().message, HasSubstr("is no Jinja2 template: line 2"));
}

TEST_F(Render, Sandbox_KeepsTheTemplateIn) {
  for (const char* text :
       {"{{ ''.__class__.__mro__ }}", "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}", "{% include '/etc/passwd' %}"}) {
    const auto answer = render(text);
    EXPECT_TRUE(!answer || answer->empty()) << text << ": " << *answer;
  }
}

TEST_F(Render, Limits_StopIt) {
  const auto code = [&](const std::string& text, const RenderLimits& limits) {
    const auto answer = render(text, hello(), limits);
    return answer ? "rendered" : std::string(error_info(answer.error().code).id);
  };
  EXPECT_EQ(code("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                 {.time = std::chrono::milliseconds(1500)}),
            "INPUT-LIMIT");
  EXPECT_EQ(code("{% for i in range(9999) %}{{ 'x' * 1000 }}{% endfor %}", {}), "INPUT-LIMIT");
  EXPECT_EQ(code("{{ 'x' * 2000000000 }}", {}), "INPUT-LIMIT");
  EXPECT_EQ(code("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", {}), "INPUT-LIMIT");
}

std::vector<std::string> names(const std::vector<ChatTemplate>& templates) {
  std::vector<std::string> out;
  out.reserve(templates.size());
  for (const ChatTemplate& one : templates) out.push_back(one.name + "=" + one.text);
  return out;
}

TEST(LoadChatTemplates, Text_IsTheDefault) {
  const TemporaryFolder folder;
  EXPECT_TRUE(load_chat_templates(folder.path()).value().empty());
  folder.write("tokenizer_config.json", R"({"chat_template": "T"})");
  EXPECT_THAT(names(load_chat_templates(folder.path()).value()), testing::ElementsAre("default=T"));
}

TEST(LoadChatTemplates, List_HasNames) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "default", "template": "D"},
                                     {"name": "rag", "template": "R"}]})");
  const auto templates = load_chat_templates(folder.path()).value();
  EXPECT_THAT(names(templates), testing::ElementsAre("default=D", "rag=R"));
  EXPECT_EQ(templates[1].where, "/chat_template/1/template");
}

TEST(LoadChatTemplates, Files_CountMoreThanTheConfiguration) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "T"})");
  folder.write("chat_template.jinja", "J");
  folder.write("additional_chat_templates/tool_use.jinja", "U");
  folder.write("additional_chat_templates/README.md", "no template");
  EXPECT_THAT(names(load_chat_templates(folder.path()).value()),
              testing::ElementsAre("default=J", "tool_use=U"));
}

TEST(LoadChatTemplates, BrokenOnes_AreRefused) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})");
  EXPECT_EQ(load_chat_templates(folder.path()).error().where, "/chat_template/0/template");
  folder.write("tokenizer_config.json", R"({"chat_template": 3})");
  EXPECT_EQ(load_chat_templates(folder.path()).error().code, ErrorCode::kConfigType);
  folder.write("chat_template.jinja", "a\xff");
  EXPECT_EQ(load_chat_templates(folder.path()).error().code, ErrorCode::kInputEncoding);
}

TEST(ChooseChatTemplate, NameToolsOrDefault_DecidesWhich) {
  const std::vector<ChatTemplate> templates = {
      {.name = "default", .text = "", .file = "", .where = ""},
      {.name = "tool_use", .text = "", .file = "", .where = ""}};
  const auto name = [&](std::string_view wanted, bool tools) {
    const auto chosen = choose_chat_template(templates, wanted, tools, "m");
    return chosen ? (*chosen)->name : "error: " + chosen.error().text();
  };
  EXPECT_EQ(name("", false), "default");
  EXPECT_EQ(name("", true), "tool_use");
  EXPECT_EQ(name("default", true), "default");
  EXPECT_THAT(name("tooluse", false), HasSubstr("it has default and tool_use"));
  EXPECT_THAT(choose_chat_template({}, "", false, "m").error().message,
              HasSubstr("no chat template"));
  const std::vector<ChatTemplate> other = {{.name = "rag", .text = "", .file = "", .where = ""}};
  EXPECT_THAT(choose_chat_template(other, "", false, "m").error().hint, HasSubstr("rag"));
}

TEST(RunProcess, InputAndOutput_MayBeLargerThanAnyBuffer) {
  const std::vector<std::string> cat = {"cat"};
  const std::string input(3'000'000, 'x');
  const auto result = run_process(cat, input, {}).value();
  EXPECT_EQ(result.end, ProcessResult::End::kExited);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.output.size(), input.size());
}

TEST(RunProcess, Limits_KillIt) {
  const std::vector<std::string> sleep = {"sleep", "60"};
  const auto slow = run_process(sleep, "", {.time = std::chrono::milliseconds(100)}).value();
  EXPECT_EQ(slow.end, ProcessResult::End::kTimedOut);
  const std::vector<std::string> yes = {"yes"};
  const auto loud = run_process(yes, "", {.output_bytes = 1000}).value();
  EXPECT_EQ(loud.end, ProcessResult::End::kTooMuchOutput);
}

TEST(RunProcess, Ends_AreToldApart) {
  const auto shell = [](const std::string& command) {
    const std::vector<std::string> words = {"sh", "-c", command};
    return run_process(words, "ignored input", {}).value();
  };
  EXPECT_EQ(shell("exit 3").code, 3);
  EXPECT_EQ(shell("kill -9 $$").end, ProcessResult::End::kKilled);
  EXPECT_EQ(shell("echo no >&2").errors, "no\n");
  const std::vector<std::string> none = {"kernelpath-no-such-program"};
  EXPECT_EQ(run_process(none, "", {}).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace kernelpath::tokenizer
