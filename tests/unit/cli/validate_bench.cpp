// Times the value matrix of llm-validate for a model: the resolutions that its facts need, and the
// rules of TensorRT-LLM and of all engines over every combination. Of one thread, in processor
// time: what else the machine does is not counted.
//
// usage: validate_bench MODEL [RUNS]      (scripts/bench-validate builds and runs it)
#include "cli/arguments.h"
#include "cli/matrix_facts.h"
#include "cli/settings.h"
#include "cli/validate.h"
#include "cli/validate_judge.h"
#include "config/load.h"
#include "features/matrix.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

using namespace kernelpath;  // NOLINT(google-build-using-namespace): a program of one file

// Thirteen thousand combinations; the first six of these axes change what the engine resolves.
std::vector<features::MatrixAxis> axes(features::Context& context) {
  std::vector<features::MatrixAxis> out = {
      *features::make_axis(context, "tp", {"1", "2", "4", "8"}),
      *features::make_axis(context, "max_seq_len", {"8192", "131072"})};
  for (const char* name : {"kv", "backend", "enable_attention_dp", "speculative",
                           "prefill_cuda_graph_backend", "enable_lora"}) {
    out.push_back(*features::find_axis(context.table(), name));
  }
  return out;
}

std::size_t judge_all(const cli::ValidateQuestion& question, const cli::LoadedModel& model) {
  const cli::Judge judge(question, &model);
  const cli::EngineCombination base =
      *cli::engine_combination(question, question.base.engines.front());
  const cli::JudgedEngine judged = judge(base);
  features::Context own = features::context_of(judged.combination);
  features::Context shared = features::shared_context_of(judged.combination);
  std::vector<features::MatrixAxis> all = axes(own);
  cli::MatrixFacts facts = cli::matrix_facts(judge, base, all, own, shared);
  auto matrix =
      *features::judge_matrix(own, std::move(all), {.facts = std::move(facts.own), .scope = {}});
  features::add_rules(matrix, shared, facts.shared, {});
  return matrix.cells.size();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int runs = argc > 2 ? std::atoi(argv[2]) : 11;
  const auto arguments = cli::parse_arguments({"--engine", "trtllm", "--device", "h100-sxm"});
  const auto settings = cli::make_settings(*arguments, {}, cli::validate_program());
  const auto question = cli::make_validate_question(*settings, {}, {});
  const auto config = config::load_model(argv[1], {});
  if (!question || !config) return 2;
  const cli::LoadedModel model{.config = *config};
  std::vector<double> per_combination;
  std::size_t combinations = 0;
  for (int run = 0; run < runs; ++run) {
    const std::clock_t start = std::clock();
    combinations = judge_all(*question, model);
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC * 1e9;
    per_combination.push_back(took / static_cast<double>(combinations));
  }
  std::sort(per_combination.begin(), per_combination.end());
  const double median = per_combination[per_combination.size() / 2];
  std::printf(
      "with a model: combinations %zu  median %.0f ns each  best %.0f ns  10000 take %.1f ms\n",
      combinations, median, per_combination.front(), median / 100.0);
  return 0;
}
