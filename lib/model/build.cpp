#include "checkpoint/tensor_files.h"
#include "model/classes.h"
#include "model/decoder.h"
#include "model/model.h"
#include "model/quantization.h"

#include <utility>

namespace kernelpath::model {

Result<std::unique_ptr<Model>> build(const config::ModelConfig& config, const std::string& folder,
                                     kernels::Executor& executor, const BuildOptions& options) {
  KERNELPATH_TRY(family, family_of(config, options.class_name));
  KERNELPATH_TRY(spec, make_spec(config, *family));
  KERNELPATH_TRY(plan, QuantizationPlan::make(config.quantization));
  auto decoder = std::make_unique<Decoder>(std::move(spec), plan, executor);
  if (!options.shape_only) {
    KERNELPATH_TRY(files, checkpoint::TensorFiles::open(folder));
    KERNELPATH_CHECK_OK(decoder->load(files, options.load_threads));
  }
  return std::unique_ptr<Model>(std::move(decoder));
}

}  // namespace kernelpath::model
