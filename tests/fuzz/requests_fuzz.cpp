// Any bytes as a line of a prompts file and as a golden.json: an error with a place, or requests
// and runs whose parts keep what their types promise.
#include "base/assert.h"
#include "runtime/expectation.h"
#include "runtime/request.h"
#include "runtime/sampler.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace {

using kernelpath::Error;
using kernelpath::ErrorCode;
using kernelpath::runtime::ExpectedRun;
using kernelpath::runtime::GenerationRequest;

void check_error(const Error& error) {
  KERNELPATH_ASSERT(error.code != ErrorCode::kInternal);
  KERNELPATH_ASSERT(!error.message.empty() && !error.text().empty());
}

void check_request(const GenerationRequest& request) {
  // Exactly one of the three says what to go on from.
  const int sources = static_cast<int>(request.prompt.has_value()) +
                      static_cast<int>(!request.prompt_ids.empty()) +
                      static_cast<int>(!request.messages.empty());
  KERNELPATH_ASSERT(sources == 1);
  KERNELPATH_ASSERT(request.max_tokens >= 1 && request.logprobs >= 0);
  for (const std::int32_t token : request.prompt_ids) KERNELPATH_ASSERT(token >= 0);
  KERNELPATH_ASSERT(kernelpath::runtime::check_sampling(request.sampling).has_value());
}

void check_run(const ExpectedRun& run) {
  KERNELPATH_ASSERT(run.gaps.size() == run.output_ids.size());
  for (const double gap : run.gaps) KERNELPATH_ASSERT(!std::isnan(gap));
  // What a run expects is no difference from itself.
  KERNELPATH_ASSERT(!kernelpath::runtime::first_difference(run, run.output_ids));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const GenerationRequest defaults{.max_tokens = 1};
  const auto request = kernelpath::runtime::parse_request(text, 7, "fuzz", defaults);
  if (request) {
    check_request(*request);
  } else {
    check_error(request.error());
  }
  const auto expectation = kernelpath::runtime::parse_expectation(text, "fuzz");
  if (!expectation) {
    check_error(expectation.error());
    return 0;
  }
  KERNELPATH_ASSERT(!expectation->runs.empty());
  for (const ExpectedRun& run : expectation->runs) check_run(run);
  return 0;
}
