#include "config/load.h"
#include "engines/engine.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <string>
#include <vector>

// Every remedy that --why-not suggests is applied to the request as a user would, by its words, and
// the backend must then be admitted.

namespace {

using namespace kernelpath;
using engines::Engine;
using engines::Request;

// "--page-size 64", "without --dcp", "--set vllm.register_backend.CUSTOM=module.Class" … → the
// request that the words make. False for words that are no change of an option.
bool set_option(Request& request, const std::string& option, const std::string& value) {
  engines::Deployment& deployment = request.deployment;
  if (option == "--device") {
    request.device = hardware::find_device(value).value();
  } else if (option == "--kv-cache-dtype") {
    deployment.kv_dtype = value;
  } else if (option == "--dtype") {
    deployment.dtype = value;
  } else if (option == "--page-size") {
    deployment.page_size = std::stoll(value);
  } else if (option == "--tp") {
    deployment.tp = std::stoll(value);
  } else if (option == "--has") {
    request.environment.has.push_back(value);
  } else if (option == "--env") {
    const std::size_t equals = value.find('=');
    request.environment.variables.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  } else if (option == "--set") {
    const std::size_t dot = value.find('.');
    const std::size_t equals = value.find('=');
    deployment.settings.emplace_back(value.substr(dot + 1, equals - dot - 1),
                                     value.substr(equals + 1));
  } else {
    return false;
  }
  return true;
}

bool unset_option(Request& request, const std::string& option) {
  engines::Deployment& deployment = request.deployment;
  if (option == "--page-size") {
    deployment.page_size.reset();
  } else if (option == "--dcp") {
    deployment.dcp = 1;
  } else if (option == "--cp") {
    deployment.cp = 1;
  } else if (option == "--speculative") {
    deployment.speculative.reset();
    deployment.draft_tokens.reset();
  } else {
    return false;
  }
  return true;
}

bool apply(Request& request, const std::string& words) {
  const std::size_t space = words.find(' ');
  const std::string first = words.substr(0, space);
  const std::string rest = words.substr(space + 1);
  if (first == "without") return unset_option(request, rest);
  if (first == "install") {
    std::erase(request.environment.lacks, rest.substr(0, rest.find(' ')));
    return true;
  }
  return set_option(request, first, rest);
}

const std::vector<config::ModelConfig>& models() {
  static const std::vector<config::ModelConfig> kModels = [] {
    std::vector<config::ModelConfig> out;
    for (const char* name :
         {"meta-llama__Meta-Llama-3.1-8B", "deepseek-ai__DeepSeek-V3", "deepseek-ai__DeepSeek-V3.2",
          "openai__gpt-oss-120b", "google__gemma-3-4b-it"}) {
      out.push_back(config::load_model(std::string(KERNELPATH_CONFIGS_DIR "/") + name).value());
    }
    return out;
  }();
  return kModels;
}

template <class Values>
auto one_of(const Values& values) {
  return values[*rc::gen::inRange<std::size_t>(0, std::size(values))];
}

Request any_request() {
  const std::vector<const char*> devices = {"a100-80g", "h100-sxm", "b200", "rtx5090", "mi300x"};
  const std::vector<std::string> kv = {"auto", "fp8", "fp8_e4m3", "turboquant_k8v4"};
  Request request{.model = one_of(models()),
                  .device = hardware::find_device(one_of(devices)).value(),
                  .deployment = {},
                  .environment = {}};
  request.deployment.kv_dtype = one_of(kv);
  request.deployment.tp = one_of(std::vector<std::int64_t>{1, 8});
  request.deployment.dcp = one_of(std::vector<std::int64_t>{1, 2});
  if (*rc::gen::arbitrary<bool>()) request.deployment.page_size = 16;
  if (*rc::gen::arbitrary<bool>()) request.environment.lacks = {"flashinfer"};
  return request;
}

void remedies_admit(const Engine& engine) {
  const std::vector<engines::TableRow> backends = engine.table("backends");
  const Request request = any_request();
  const std::string backend = one_of(backends).name;
  const auto why_not = engine.why_not(request, backend);
  RC_ASSERT(why_not.has_value());
  RC_ASSERT(why_not->admitted || !why_not->refusals.empty());
  for (const auto& remedy : why_not->remedies) {
    Request changed = request;
    for (const Engine::WhyNot::Change& change : remedy) {
      RC_ASSERT(apply(changed, change.option));
    }
    const auto after = engine.why_not(changed, backend);
    RC_ASSERT(after.has_value());
    RC_ASSERT(after->admitted);
  }
}

// Each case searches for remedies: a hundred of them would take minutes.
bool check_few(const std::string& engine) {
  setenv("RC_PARAMS", "max_success=20", 0);
  return rc::check([&] { remedies_admit(*engines::find_engine(engine).value()); });
}

TEST(VllmWhyNot, EveryRemedyOf0251_AdmitsTheBackend) { EXPECT_TRUE(check_few("vllm@0.25.1")); }

TEST(VllmWhyNot, EveryRemedyOf0330_AdmitsTheBackend) { EXPECT_TRUE(check_few("vllm@0.33.0")); }

}  // namespace
