#include "cli/run_session.h"

#include "base/rounding.h"
#include "base/text.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace kernelpath::cli {
namespace {

using kernels::cpu::Isa;

constexpr std::int64_t kMostSequences = 16;   // that run at one time, unless --batch-size says
constexpr std::int64_t kBatchedTokens = 512;  // of one step: prompts come in chunks of it

// VANILLA is the reference; the others take the fastest set, or the one that --kernel names.
Result<Isa> chosen_kernels(const RunQuestion& question) {
  const bool vanilla = question.resolution.selected_backend == "VANILLA";
  if (!question.settings.is_set(Option::kKernel)) {
    return vanilla ? Isa::kReference : kernels::cpu::best_isa();
  }
  const std::string& name = question.settings.text(Option::kKernel);
  const auto isa = kernels::cpu::find_isa(name).value_or(Isa::kReference);
  if (vanilla && isa != Isa::kReference) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "backend VANILLA has the kernels 'reference' alone",
                 .where = "--kernel",
                 .value = name});
  }
  if (kernels::cpu::has_isa(isa)) return isa;
  std::vector<std::string> known;
  for (const Isa one : kernels::cpu::kIsas) {
    if (kernels::cpu::has_isa(one)) known.emplace_back(kernels::cpu::isa_name(one));
  }
  return fail({.code = ErrorCode::kUnavailable,
               .message = "this processor does not have it; it has " + join_words(known),
               .where = "--kernel",
               .value = name});
}

// No sequence is longer, whatever a request says.
std::int64_t longest_sequence(const engines::Request& request) {
  constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max() / 2;
  return request.deployment.max_model_len.value_or(
      request.model.max_position_embeddings.value_or(kUnknown));
}

// Room for the longest requests that can run at the same time, each in whole blocks and one more
// for the copy of a shared one. The ranks of --dcp share a block's tokens.
std::int64_t needed_tokens(const engines::Request& request,
                           const std::vector<runtime::Prompt>& prompts, std::int64_t sequences) {
  const std::int64_t block = request.deployment.page_size.value_or(16) * request.deployment.dcp;
  std::vector<std::int64_t> sizes;
  sizes.reserve(prompts.size());
  for (const runtime::Prompt& prompt : prompts) {
    const auto tokens =
        std::min(static_cast<std::int64_t>(prompt.tokens.size()) + prompt.max_tokens,
                 longest_sequence(request));
    sizes.push_back(round_up(tokens, block) + block);
  }
  std::ranges::sort(sizes, std::greater());
  std::int64_t out = 0;
  for (std::size_t i = 0; i < sizes.size() && static_cast<std::int64_t>(i) < sequences; ++i) {
    out += sizes[i];
  }
  return out;
}

}  // namespace

Result<runtime::SessionOptions> session_options(const RunQuestion& question,
                                                const std::vector<runtime::Prompt>& prompts) {
  const Settings& settings = question.settings;
  const engines::Deployment& deployment = question.request.deployment;
  runtime::SessionOptions out{.weights = question.weights,
                              .model_class = question.resolution.model_class};
  out.threads = static_cast<int>(
      settings.integer(Option::kThreads).value_or(question.ranks.default_threads()));
  out.ranks = question.ranks.placement();
  out.ranks_on_host = question.ranks.ranks_on_host();
  const auto requests = static_cast<std::int64_t>(prompts.size());
  out.limits.max_sequences =
      std::min(requests, settings.integer(Option::kBatchSize).value_or(kMostSequences));
  out.limits.max_batched_tokens = std::max(kBatchedTokens, 2 * out.limits.max_sequences);
  out.kv_bytes = settings.integer(Option::kKvMemory);
  out.kv_tokens = needed_tokens(question.request, prompts, out.limits.max_sequences);
  out.ngrams = deployment.speculative.has_value();
  out.draft_tokens = deployment.draft_tokens.value_or(out.draft_tokens);
  out.max_model_len = deployment.max_model_len;
  KERNELPATH_TRY(isa, chosen_kernels(question));
  out.isa = isa;
  return out;
}

}  // namespace kernelpath::cli
