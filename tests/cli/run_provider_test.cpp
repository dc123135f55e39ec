// External model providers through llm-run: the class that one names is what really runs.
#include "run_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string provider(const std::string& name) {
  return std::string(KERNELPATH_BUILD_DIR) + "/tests/providers/" + name;
}

const std::vector<std::string> kPrompt = {"--prompt-tokens", "632,39,271,320", "-n", "12",
                                          "--ignore-eos",    "--quiet"};

std::string text_of(const std::string& folder, const std::vector<std::string>& options = {}) {
  std::vector<std::string> arguments = {folder};
  arguments.insert(arguments.end(), kPrompt.begin(), kPrompt.end());
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.out;
}

// The same weights as another architecture: what the class named by the provider must compute.
std::string text_of_granite() {
  const TemporaryFolder folder;
  const std::string copy = copy_checkpoint(kLlama, folder);
  replace_in_file(copy + "/config.json", "LlamaForCausalLM", "GraniteForCausalLM");
  return text_of(copy);
}

TEST(RunProvider, ClassOfTheProvider_IsWhatRuns) {
  const std::string built_in = text_of(checkpoint(kLlama));
  const std::string granite = text_of_granite();
  ASSERT_NE(built_in, granite);
  EXPECT_EQ(text_of(checkpoint(kLlama), {"--custom-module-dirs", provider("llama_as_granite")}),
            granite);
}

TEST(RunProvider, OfTwoProviders_TheLastOneRuns) {
  // Mistral computes what Llama computes.
  const std::string llama = text_of(checkpoint(kLlama));
  const std::string as_granite = provider("llama_as_granite");
  const std::string as_mistral = provider("llama_override");
  EXPECT_EQ(text_of(checkpoint(kLlama), {"--custom-module-dirs", as_granite + "," + as_mistral}),
            llama);
  EXPECT_EQ(text_of(checkpoint(kLlama), {"--custom-module-dirs", as_mistral + "," + as_granite}),
            text_of_granite());
}

TEST(RunProvider, Why_NamesClassAndModule_AsInspectDoes) {
  const std::vector<std::string> options = {"--why", "--custom-module-dirs",
                                            provider("llama_as_granite")};
  std::vector<std::string> arguments = {checkpoint(kLlama)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Outcome own = run(arguments);
  EXPECT_EQ(own.exit_code, 0) << own.err;
  EXPECT_THAT(own.out, HasSubstr("LlamaForCausalLM is served by GraniteForCausalLM of "
                                 "granite.override"));
  arguments.insert(arguments.end(), {"--engine", "kernelpath", "--device", "cpu"});
  EXPECT_EQ(inspect(arguments).out, own.out);
}

TEST(RunProvider, ClassThatIsNotBuiltIn_IsRefusedByBothPrograms) {
  const std::vector<std::string> arguments = {checkpoint(kLlama), "--custom-module-dirs",
                                              provider("acme")};
  std::vector<std::string> asked = arguments;
  asked.insert(asked.end(), kPrompt.begin(), kPrompt.end());
  const Outcome own = run(asked);
  EXPECT_EQ(own.exit_code, 4);
  EXPECT_EQ(own.out, "");
  EXPECT_THAT(own.err, AllOf(HasSubstr("acme.models names the class AcmeLlama"),
                             HasSubstr("LlamaForCausalLM")));
  asked = arguments;
  asked.insert(asked.end(), {"--engine", "kernelpath", "--device", "cpu"});
  EXPECT_THAT(inspect(asked).out, HasSubstr("KP-MODEL-FOREIGN"));
}

struct Broken {
  std::string folder;
  std::string message;
};

class BrokenProvider : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenProvider, IsAnErrorOfItsOwn) {
  std::vector<std::string> arguments = {checkpoint(kLlama), "--custom-module-dirs",
                                        provider(GetParam().folder)};
  arguments.insert(arguments.end(), kPrompt.begin(), kPrompt.end());
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr(GetParam().folder + ".so"), HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(Run, BrokenProvider,
                         ::testing::Values(Broken{"wrong_abi", "PROVIDER-ABI"},
                                           Broken{"no_entry", "kernelpath_provider_entry"},
                                           Broken{"no_module", "names no module"},
                                           Broken{"null_name", "empty or too long class name"},
                                           Broken{"failing_start", "no licence for AcmeLlama"},
                                           Broken{"throwing_start", "its start threw"}),
                         [](const auto& test) { return test.param.folder; });

}  // namespace
}  // namespace kernelpath::testing
