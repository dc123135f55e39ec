#pragma once

#include "engines/engine.h"
#include "engines/request.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines {

// One change of a request that --why-not may try.
struct Edit {
  std::string subject;  // what it changes: a set holds one edit of each subject
  Engine::WhyNot::Change change;
  std::function<void(Request&)> apply;
};

struct SearchLimits {
  std::size_t most_remedies = 6;     // sets beyond this many are not listed: the first are as small
  std::size_t most_changes = 3;      // in one set
  std::size_t most_attempts = 4000;  // requests that are resolved
};

// The smallest sets of edits after which `admitted` holds, in the order of the list: single edits,
// else pairs, else larger sets. Every set in the answer was tried.
std::vector<std::vector<Engine::WhyNot::Change>> find_remedies(
    const Request& request, std::span<const Edit> edits,
    const std::function<bool(const Request&)>& admitted, const SearchLimits& limits = {});

// One device for each compute capability, or AMD target, that is not the request's.
std::vector<Edit> device_edits(const Request& request);

void remove_setting(Request& request, std::string_view field);
void remove_variable(Request& request, std::string_view name);

// Installs what the user said is missing.
void add_install_edits(const Request& request, std::vector<Edit>& edits);

// Leaves out --speculative (with its draft), --page-size, --dcp and --cp where they are given.
void add_option_undo_edits(const Request& request, std::vector<Edit>& edits);

// Tries each of `dtypes` as --kv-cache-dtype, for engines whose argument has this name. The names
// must outlive the edits.
void add_kv_dtype_edits(const Request& request, std::span<const std::string_view> dtypes,
                        std::vector<Edit>& edits);

// Tries each of `sizes` as --page-size (--tp), for engines whose argument is `setting`. `unit` says
// what the engine calls a page.
struct PageSizes {
  std::span<const std::int64_t> sizes;
  std::string_view setting;
  std::string_view unit = "page";
  std::int64_t usual = 0;  // what the engine takes where nobody states one; 0: nobody knows
};
void add_page_size_edits(const Request& request, const PageSizes& pages, std::vector<Edit>& edits);
void add_tp_edits(const Request& request, std::string_view setting, std::vector<Edit>& edits);

// Edits that undo what the user gave with --env, and with --set ENGINE.FIELD but for `kept` fields.
void add_undo_edits(const Request& request, std::string_view engine,
                    std::span<const std::string_view> kept, std::vector<Edit>& edits);

}  // namespace kernelpath::engines
