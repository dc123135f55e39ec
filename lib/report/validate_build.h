#pragma once

#include "config/model_config.h"
#include "features/question.h"
#include "json/document.h"
#include "report/validate_document.h"

#include <string>
#include <string_view>

namespace kernelpath::report {

// What places of findings are looked up in; each may be missing.
struct PlaceSources {
  const features::StatedArguments* arguments = nullptr;
  const config::ModelConfig* model = nullptr;
  const json::Document* model_document = nullptr;  // for lines and columns in config.json
};

// Where the field of a finding was stated: an option, a line of an options file, a field of
// config.json; else the option that would set it.
FindingPlace place_of(const features::Finding& finding, const PlaceSources& sources);

// The findings of one engine with their places.
EngineFindings engine_findings(std::string_view engine, std::string_view version,
                               const features::CombinationAnswer& answer,
                               const PlaceSources& sources);

}  // namespace kernelpath::report
