#include "engines/table_header.h"

#include "json/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines {
namespace {

using ::testing::HasSubstr;

std::string header(std::string_view changed = "", std::string_view value = "") {
  const std::vector<std::pair<std::string, std::string>> members = {
      {"schema", "kernelpath/engine-profile"},
      {"schema_version", "1.4.2"},
      {"engine", "sglang"},
      {"table", "registry"}};
  std::string out = "{";
  for (const auto& [name, usual] : members) {
    out += '"' + name + "\": \"" + (name == changed ? std::string(value) : usual) + "\", ";
  }
  return out + R"("sources": {"S1": {"repo": "r", "file": "a.py", "commit": "c"},
                              "S2": {"repo": "r", "file": "b.py", "commit": "d"}}})";
}

class TableHeader : public ::testing::Test {
 protected:
  JsonFields fields(const std::string& text) {
    auto parsed = json::parse(text, "registry.json");
    EXPECT_TRUE(parsed) << text;
    document_ = std::move(*parsed);
    return JsonFields::of(document_.root,
                          {.code = ErrorCode::kInputSchema, .file = "registry.json"})
        .value();
  }

 private:
  json::Document document_;
};

TEST_F(TableHeader, ThisBuildsTable_IsTaken) {
  EXPECT_TRUE(check_table_header(fields(header()), "sglang", "registry"));
}

TEST_F(TableHeader, AnotherSchemaVersionEngineOrTable_IsNamedWithWhatIsAllowed) {
  struct Case {
    std::string_view member;
    std::string_view value;
    std::string_view allowed;
  };
  const Case cases[] = {{"schema", "kernelpath/rules", "kernelpath/engine-profile"},
                        {"schema_version", "2.0.0", "1.x"},
                        {"engine", "vllm", "sglang"},
                        {"table", "backends", "registry"}};
  for (const auto& [member, value, allowed] : cases) {
    const auto checked = check_table_header(fields(header(member, value)), "sglang", "registry");
    ASSERT_FALSE(checked) << member;
    const std::string text = checked.error().text();
    EXPECT_THAT(text, HasSubstr("registry.json"));
    EXPECT_THAT(text, HasSubstr("/" + std::string(member)));
    EXPECT_THAT(text, HasSubstr(std::string(allowed)));
  }
}

TEST_F(TableHeader, Sources_AreInTheOrderOfTheFile) {
  const auto sources = read_table_sources(fields(header()));
  ASSERT_TRUE(sources);
  ASSERT_EQ(sources->size(), 2U);
  EXPECT_EQ((*sources)[0].tag, "S1");
  EXPECT_EQ((*sources)[1].file, "b.py");
  EXPECT_EQ((*sources)[1].commit, "d");
}

}  // namespace
}  // namespace kernelpath::engines
