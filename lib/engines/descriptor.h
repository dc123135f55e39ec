#pragma once

#include <array>
#include <string_view>

namespace kernelpath::engines {

// How an engine comes from a model's files to a running kernel: what its registry looks like and
// who decides. One phrase an aspect, in the engine's own terms.
struct Descriptor {
  std::string_view dispatch_key;       // what of the model's files picks the class
  std::string_view registry_form;      // what the table of models is made of
  std::string_view lazy_import;        // when a model's code is loaded
  std::string_view external_models;    // how a model that the engine does not have is added
  std::string_view backend_selection;  // who picks the attention backend
  std::string_view kv_dtype;           // where the dtype of the KV cache is asked for
  std::string_view compatibility;      // where it is judged whether all that goes together
  std::string_view on_mismatch;        // what happens where it does not
  std::string_view files;              // of the engine, in which the above stands
};

struct DescriptorAspect {
  std::string_view name;
  std::string_view Descriptor::*phrase;
};

// Every aspect, in the order of reports.
inline constexpr auto kDescriptorAspects = std::to_array<DescriptorAspect>({
    {"dispatch key", &Descriptor::dispatch_key},
    {"registry form", &Descriptor::registry_form},
    {"lazy import", &Descriptor::lazy_import},
    {"external models", &Descriptor::external_models},
    {"backend selection", &Descriptor::backend_selection},
    {"KV dtype", &Descriptor::kv_dtype},
    {"compatibility is judged", &Descriptor::compatibility},
    {"on a mismatch", &Descriptor::on_mismatch},
    {"source", &Descriptor::files},
});

}  // namespace kernelpath::engines
