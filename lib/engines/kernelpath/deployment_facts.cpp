#include "engines/kernelpath/deployment_facts.h"

#include "attention/selector.h"
#include "engines/kernelpath/launch.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace kernelpath::engines::kernelpath {
namespace {

// A layer that needs nothing beyond causal attention: what is refused for it is refused for all.
// Its head size is one that every backend takes, and that fills the blocks of every cache type.
constexpr std::int64_t kPlainHeadDim = 64;

attention::LayerRequest plain_layer(const hardware::Device& device, const Launch& launch) {
  attention::LayerRequest out;
  out.platform = device.platform;
  out.kv_type = launch.kv_type;
  out.layout = launch.kv_layout;
  out.page_size = launch.page_size;
  out.geometry.num_heads = 1;
  out.geometry.num_kv_heads = 1;
  out.geometry.head_dim = kPlainHeadDim;
  out.geometry.v_head_dim = kPlainHeadDim;
  out.context_parallel = launch.dcp;
  if (launch.dcp > 1) out.lse_base = attention::LogBase::kE;
  return out;
}

json::Value texts(const std::vector<std::string>& list) {
  std::vector<json::Value> out;
  out.reserve(list.size());
  for (const std::string& text : list) out.push_back(json::Value::string(text));
  return json::Value::array(std::move(out));
}

std::vector<std::string> refusals_of(const attention::Selection& selection) {
  std::vector<std::string> out;
  if (selection.chosen != nullptr) return out;
  for (const attention::Candidate& candidate : selection.candidates) {
    for (const attention::Refusal& refusal : candidate.refusals) {
      out.push_back(fmt::format("{}: {}", candidate.row->name, refusal.reason));
    }
  }
  return out;
}

// By the option that each sentence begins with, so that a finding has its place.
void add_unsupported(const std::vector<std::string>& sentences,
                     std::vector<Resolution::Fact>& out) {
  std::vector<std::string> ranks;
  for (const std::string& sentence : sentences) {
    const std::string_view option = std::string_view(sentence).substr(0, sentence.find(' '));
    const bool other =
        option == "--quantization" || option == "--dtype" || option == "--speculative";
    if (!other) ranks.push_back(sentence);
  }
  out.push_back({"launch.ranks", texts(ranks)});
  for (const std::string option : {"quantization", "dtype", "speculative"}) {
    std::vector<std::string> own;
    for (const std::string& sentence : sentences) {
      if (sentence.starts_with(fmt::format("--{} ", option))) own.push_back(sentence);
    }
    out.push_back({"launch." + option, texts(own)});
  }
}

}  // namespace

std::vector<Resolution::Fact> deployment_facts(const hardware::Device& device,
                                               const Deployment& deployment) {
  std::vector<Resolution::Fact> out;
  add_unsupported(unsupported_options(deployment), out);
  const Result<Launch> launch = read_launch(deployment);
  std::vector<std::string> faults;
  if (!launch) faults.push_back(launch.error().text());
  out.push_back({"launch.faults", texts(faults)});
  if (!launch) return out;
  const auto selection =
      attention::select({.layer = plain_layer(device, *launch), .backend = launch->backend});
  if (!selection) return out;
  out.push_back({"table.refusals", texts(refusals_of(*selection))});
  std::vector<std::string> aliases;
  if (!selection->alias.empty()) {
    aliases.push_back(
        fmt::format("{} stands for {}", selection->alias, selection->candidates.front().row->name));
  }
  out.push_back({"launch.aliases", texts(aliases)});
  return out;
}

}  // namespace kernelpath::engines::kernelpath
