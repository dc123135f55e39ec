#pragma once

#include "base/result.h"
#include "comm/communicator.h"

#include <span>
#include <string>

namespace kernelpath::comm {

// Collective. Each rank gives how it fared. Success if all succeeded; else every rank gets the
// error of the first rank that failed, which the message names unless it is rank 0: so all of them
// end with one code, and rank 0 can print it. Errors: that; kRuntime where the ranks cannot talk.
Result<void> agree(Communicator& ranks, const Result<void>& own);

// The same for what is no success without a value.
template <class T>
Result<T> agree_on(Communicator& ranks, Result<T> own) {
  KERNELPATH_CHECK_OK(agree(ranks, own ? Result<void>() : Result<void>(fail(own.error()))));
  return own;
}

// Collective. `text` becomes that of rank `root` on all ranks. Error: kRuntime.
Result<void> broadcast_text(Communicator& ranks, std::string& text, int root = 0);

}  // namespace kernelpath::comm
