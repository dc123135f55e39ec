#include "engines/remedy_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::engines {
namespace {

using Change = Engine::WhyNot::Change;

// Walks the sets of edits of one size, in the order of the list.
class Search {
 public:
  Search(const Request& request, std::span<const Edit> edits,
         const std::function<bool(const Request&)>& admitted, const SearchLimits& limits)
      : request_(request), edits_(edits), admitted_(admitted), limits_(limits) {}

  void add_sets(std::size_t size, std::size_t from) {
    if (size == 0) return add_if_admitted();
    for (std::size_t i = from; i < edits_.size() && !is_done(); ++i) {
      const bool same_subject = std::any_of(chosen_.begin(), chosen_.end(), [&](const Edit* other) {
        return other->subject == edits_[i].subject;
      });
      if (same_subject) continue;
      chosen_.push_back(&edits_[i]);
      add_sets(size - 1, i + 1);
      chosen_.pop_back();
    }
  }

  [[nodiscard]] bool has_found() const { return !found_.empty(); }
  [[nodiscard]] std::vector<std::vector<Change>> take() { return std::move(found_); }

 private:
  [[nodiscard]] bool is_done() const {
    return found_.size() >= limits_.most_remedies || attempts_ >= limits_.most_attempts;
  }

  void add_if_admitted() {
    ++attempts_;
    Request changed = request_;
    for (const Edit* edit : chosen_) edit->apply(changed);
    if (!admitted_(changed)) return;
    std::vector<Change> changes;
    for (const Edit* edit : chosen_) changes.push_back(edit->change);
    found_.push_back(std::move(changes));
  }

  const Request& request_;
  std::span<const Edit> edits_;
  const std::function<bool(const Request&)>& admitted_;
  const SearchLimits& limits_;
  std::vector<const Edit*> chosen_;
  std::vector<std::vector<Change>> found_;
  std::size_t attempts_ = 0;
};

std::string generation_of(const hardware::Device& device) {
  if (device.capability) return hardware::capability_text(*device.capability);
  return device.gfx_target;
}

}  // namespace

std::vector<std::vector<Change>> find_remedies(const Request& request, std::span<const Edit> edits,
                                               const std::function<bool(const Request&)>& admitted,
                                               const SearchLimits& limits) {
  Search search(request, edits, admitted, limits);
  for (std::size_t size = 1; size <= limits.most_changes && !search.has_found(); ++size) {
    search.add_sets(size, 0);
  }
  return search.take();
}

std::vector<Edit> device_edits(const Request& request) {
  std::vector<Edit> edits;
  std::vector<std::string> seen = {generation_of(request.device)};
  for (const hardware::Device& device : hardware::known_devices()) {
    const std::string generation = generation_of(device);
    if (generation.empty() || std::find(seen.begin(), seen.end(), generation) != seen.end()) {
      continue;
    }
    seen.push_back(generation);
    edits.push_back({"device",
                     {fmt::format("--device {}", device.id), generation},
                     [device](Request& out) { out.device = device; }});
  }
  return edits;
}

void remove_setting(Request& request, std::string_view field) {
  std::erase_if(request.deployment.settings, [&](const auto& pair) { return pair.first == field; });
}

void remove_variable(Request& request, std::string_view name) {
  std::erase_if(request.environment.variables,
                [&](const auto& pair) { return pair.first == name; });
}

void add_install_edits(const Request& request, std::vector<Edit>& edits) {
  for (const std::string& package : request.environment.lacks) {
    edits.push_back(
        {package,
         {fmt::format("install {} (without --lacks {})", package, package), package + " is there"},
         [package](Request& out) { std::erase(out.environment.lacks, package); }});
  }
}

void add_option_undo_edits(const Request& request, std::vector<Edit>& edits) {
  const Deployment& deployment = request.deployment;
  if (deployment.speculative) {
    edits.push_back({"speculative", {"without --speculative", "no draft tokens"}, [](Request& out) {
                       out.deployment.speculative.reset();
                       out.deployment.draft_model.reset();
                       out.deployment.draft_tokens.reset();
                       out.deployment.draft_topk.reset();
                     }});
  }
  if (deployment.page_size) {
    edits.push_back({"page size",
                     {"without --page-size", "the backend's own page size"},
                     [](Request& out) { out.deployment.page_size.reset(); }});
  }
  if (deployment.dcp != 1) {
    edits.push_back({"dcp", {"without --dcp", "no decode context parallelism"}, [](Request& out) {
                       out.deployment.dcp = 1;
                     }});
  }
  if (deployment.cp != 1) {
    edits.push_back({"cp", {"without --cp", "no prefill context parallelism"}, [](Request& out) {
                       out.deployment.cp = 1;
                     }});
  }
}

void add_kv_dtype_edits(const Request& request, std::span<const std::string_view> dtypes,
                        std::vector<Edit>& edits) {
  for (const std::string_view dtype : dtypes) {
    if (request.deployment.kv_dtype.value_or("auto") == dtype) continue;
    edits.push_back(
        {"kv",
         {fmt::format("--kv-cache-dtype {}", dtype), fmt::format("KV cache in {}", dtype)},
         [dtype](Request& out) {
           remove_setting(out, "kv_cache_dtype");
           out.deployment.kv_dtype = std::string(dtype);
         }});
  }
}

void add_page_size_edits(const Request& request, const PageSizes& pages, std::vector<Edit>& edits) {
  for (const std::int64_t size : pages.sizes) {
    if (request.deployment.page_size.value_or(pages.usual) == size) continue;
    edits.push_back(
        {"page size",
         {fmt::format("--page-size {}", size), fmt::format("{} tokens a {}", size, pages.unit)},
         [size, setting = pages.setting](Request& out) {
           remove_setting(out, setting);
           out.deployment.page_size = size;
         }});
  }
}

void add_tp_edits(const Request& request, std::string_view setting, std::vector<Edit>& edits) {
  for (const std::int64_t tp : {1, 2, 4, 8}) {
    if (request.deployment.tp == tp) continue;
    edits.push_back({"tp",
                     {fmt::format("--tp {}", tp), fmt::format("heads over {} ranks", tp)},
                     [tp, setting](Request& out) {
                       remove_setting(out, setting);
                       out.deployment.tp = tp;
                     }});
  }
}

void add_undo_edits(const Request& request, std::string_view engine,
                    std::span<const std::string_view> kept, std::vector<Edit>& edits) {
  for (const auto& [field, value] : request.deployment.settings) {
    if (std::find(kept.begin(), kept.end(), field) != kept.end()) continue;
    edits.push_back({field,
                     {fmt::format("without --set {}.{}={}", engine, field, value),
                      fmt::format("{} at its default", field)},
                     [field = field](Request& out) { remove_setting(out, field); }});
  }
  for (const auto& [name, value] : request.environment.variables) {
    edits.push_back(
        {name,
         {fmt::format("without --env {}={}", name, value), fmt::format("{} unset", name)},
         [name = name](Request& out) { remove_variable(out, name); }});
  }
}

}  // namespace kernelpath::engines
