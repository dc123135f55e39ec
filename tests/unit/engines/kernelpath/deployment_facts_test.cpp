// What rules are told of a deployment is what resolving a plain model says, both ways.
#include "engines/kernelpath/deployment_facts.h"

#include "attention/backend_table.h"
#include "config/load.h"
#include "engines/kernelpath/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpath::engines::kernelpath {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> fact(const std::vector<Resolution::Fact>& facts, const std::string& name) {
  std::vector<std::string> out;
  for (const Resolution::Fact& one : facts) {
    if (one.name != name) continue;
    for (const json::Value& item : one.value.items()) out.push_back(item.as_string());
  }
  return out;
}

// Full attention alone, with heads of 128.
Request plain_request(std::string_view device) {
  Request request;
  request.model = config::load_model(std::string(KERNELPATH_TEST_DATA) +
                                     "/configs/meta-llama__Meta-Llama-3.1-8B")
                      .value();
  request.device = *hardware::find_device(std::string(device));
  return request;
}

std::vector<std::string> backend_names() {
  std::vector<std::string> out = {"auto"};
  for (const attention::BackendRow& row : attention::backend_table()) {
    out.emplace_back(row.name);
  }
  for (const attention::BackendAlias& alias : attention::kBackendAliases) {
    out.emplace_back(alias.name);
  }
  return out;
}

TEST(DeploymentFacts, RefusalsAreThoseOfAPlainModel_BothWays) {
  int admitted = 0;
  int refused = 0;
  for (const std::string device : {"cpu", "h100-sxm"}) {
    for (const std::string& backend : backend_names()) {
      for (const attention::DataType type : attention::kDataTypes) {
        for (const std::string layout : {"HND", "NHD"}) {
          Request request = plain_request(device);
          request.deployment.backend = backend;
          request.deployment.kv_dtype = std::string(data_type_name(type));
          request.deployment.settings = {{"kv_layout", layout}};
          const auto facts = deployment_facts(request.device, request.deployment);
          const bool runs = resolve(request).status == Status::kOk;
          ++(runs ? admitted : refused);
          EXPECT_EQ(fact(facts, "table.refusals").empty(), runs)
              << device << " " << backend << " " << data_type_name(type) << " " << layout;
          EXPECT_THAT(fact(facts, "launch.faults"), IsEmpty());
        }
      }
    }
  }
  EXPECT_GT(admitted, 0);
  EXPECT_GT(refused, 0);
}

TEST(DeploymentFacts, NamesThatNoTableHolds_AreFaults) {
  const hardware::Device cpu = *hardware::find_device("cpu");
  Deployment deployment;
  deployment.kv_dtype = "int3";
  EXPECT_THAT(fact(deployment_facts(cpu, deployment), "launch.faults").front(), HasSubstr("int3"));
  deployment.kv_dtype = "nvfp4";
  EXPECT_THAT(fact(deployment_facts(cpu, deployment), "launch.faults"), IsEmpty());
}

TEST(DeploymentFacts, NameOfAnotherEngine_IsAnAlias) {
  const hardware::Device cpu = *hardware::find_device("cpu");
  Deployment deployment;
  deployment.backend = "TRTLLM";
  EXPECT_THAT(fact(deployment_facts(cpu, deployment), "launch.aliases"), Not(IsEmpty()));
  deployment.backend = "FUSED";
  EXPECT_THAT(fact(deployment_facts(cpu, deployment), "launch.aliases"), IsEmpty());
}

}  // namespace
}  // namespace kernelpath::engines::kernelpath
