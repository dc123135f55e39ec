// What makes a checkpoint a speculative draft, and what a target brings along.

#include "config/derive.h"

namespace kernelpath::config {

Result<void> derive_draft(Derivation& d) {
  Draft& draft = d.out.draft;
  // TensorRT-LLM rewrites the architecture wherever this field is there, whatever it holds.
  draft.has_draft_vocab_size = d.read.outer->find("draft_vocab_size") != nullptr;
  KERNELPATH_TRY(vocab, as_integer(d.read, d.read.find_outer({"draft_vocab_size"}), {.min = 0}));
  draft.draft_vocab_size = vocab;
  KERNELPATH_TRY(mtp, as_integer(d.read,
                                 d.read.find_stated({"num_nextn_predict_layers", "num_mtp_layers",
                                                     "mtp_num_hidden_layers", "num_mtp_modules"}),
                                 {.min = 0}));
  draft.num_nextn_predict_layers = mtp;
  draft.has_eagle_config = d.read.outer->find_non_null("eagle_config") != nullptr;
  draft.has_dflash_config = d.read.outer->find_non_null("dflash_config") != nullptr;
  if (draft.has_dflash_config) {
    KERNELPATH_TRY(
        block, as_integer(d.read, d.read.find_outer({"block_size", "dflash_config/block_size"})));
    draft.block_size = block;
  }
  KERNELPATH_TRY(targets, as_integers(d.read,
                                      d.read.find_outer({"dflash_config/target_layer_ids",
                                                         "eagle_config/"
                                                         "eagle_aux_hidden_state_layer_ids",
                                                         "target_layer_ids"}),
                                      {.min = 0}));
  draft.target_layer_ids = targets;
  return {};
}

}  // namespace kernelpath::config
