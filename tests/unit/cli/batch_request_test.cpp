#include "cli/batch_request.h"

#include "json/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::cli {
namespace {

using testing::ElementsAre;

json::Value request(std::string text) {
  Result<json::Document> document = json::parse(std::move(text), "");
  EXPECT_TRUE(document);
  return document ? document->root : json::Value();
}

TEST(BatchSettings, Fields_SetOptionsUnderAnyOfTheirNames) {
  const auto line =
      batch_settings(request(R"({"id":1,"model":"m","device":"h200","kv_cache_dtype":"fp8","tp":4,
                  "lacks":["a","b"],"strict":true,"block-size":64,"dtype":null})"),
                     Settings());
  ASSERT_TRUE(line) << line.error().text();
  EXPECT_EQ(line->settings.text(Option::kDevice), "h200");
  EXPECT_EQ(line->settings.of(Option::kDevice).where, "/device");
  EXPECT_EQ(line->settings.text(Option::kKv), "fp8");
  EXPECT_EQ(line->settings.integer(Option::kTp), 4);
  EXPECT_THAT(line->settings.list(Option::kLacks), ElementsAre("a", "b"));
  EXPECT_TRUE(line->settings.flag(Option::kStrict));
  EXPECT_EQ(line->settings.integer(Option::kPageSize), 64);
  EXPECT_FALSE(line->settings.is_set(Option::kDtype));
  EXPECT_TRUE(line->ignored_fields.empty());
}

TEST(BatchSettings, ObjectForm_GivesAssignments) {
  const auto line =
      batch_settings(request(R"({"env":{"A":"1","B":2},"set":["trtllm.x=1"]})"), Settings());
  ASSERT_TRUE(line);
  EXPECT_THAT(line->settings.list(Option::kEnv), ElementsAre("A=1", "B=2"));
  EXPECT_THAT(line->settings.list(Option::kSet), ElementsAre("trtllm.x=1"));
}

TEST(BatchSettings, LineWins_OverTheCommandLine) {
  Settings base;
  ASSERT_TRUE(base.set(Option::kDevice, {"h100-sxm"}, SetBy::kCommandLine, "--device"));
  ASSERT_TRUE(base.set(Option::kKv, {"fp8"}, SetBy::kCommandLine, "--kv"));
  const auto line = batch_settings(request(R"({"device":"b200"})"), base);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->settings.text(Option::kDevice), "b200");
  EXPECT_EQ(line->settings.text(Option::kKv), "fp8");
}

TEST(BatchSettings, UnknownFields_AreReportedAndLabelsAreNot) {
  const auto line = batch_settings(
      request(R"({"kind":"k","rule":"r","by":"run","source":{},"devcie":"h200","format":"md"})"),
      Settings());
  ASSERT_TRUE(line);
  EXPECT_THAT(line->ignored_fields, ElementsAre("devcie", "format"));
}

TEST(BatchSettings, BadValues_NameTheField) {
  const auto line = batch_settings(request(R"({"tp":0})"), Settings());
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().where, "/tp");
  EXPECT_FALSE(batch_settings(request(R"({"lacks":[["a"]]})"), Settings()));
}

TEST(BatchEngine, OneEngine_IsNeeded) {
  EXPECT_EQ(batch_engine(request(R"({"engine":"trtllm@1"})"), Settings()).value(), "trtllm@1");
  EXPECT_FALSE(batch_engine(request("{}"), Settings()));
  EXPECT_FALSE(batch_engine(request(R"({"engine":3})"), Settings()));
  Settings base;
  ASSERT_TRUE(base.set(Option::kEngine, {"trtllm"}, SetBy::kCommandLine, "--engine"));
  EXPECT_EQ(batch_engine(request("{}"), base).value(), "trtllm");
}

TEST(BatchOp, LineThenIn_IsTheOrder) {
  EXPECT_EQ(batch_op(request(R"({"op":"a"})"), request(R"({"op":"b"})")).value(), "a");
  EXPECT_EQ(batch_op(request("{}"), request(R"({"op":"b"})")).value(), "b");
  EXPECT_FALSE(batch_op(request("{}"), request("{}")));
}

}  // namespace
}  // namespace kernelpath::cli
