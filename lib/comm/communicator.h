#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kernelpath::comm {

// Some ranks that work together. Every call is collective: all ranks make the same calls in the
// same order, each from one thread. After an error nothing is known of the other ranks, and no call
// may follow but those of World that end them.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  // out = every rank's `in`, one behind the other: size() * in.size() bytes. Error: kRuntime.
  virtual Result<void> all_gather(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // `data` becomes that of rank `root`. Error: kRuntime.
  virtual Result<void> broadcast(std::span<std::byte> data, int root) = 0;
  // Returns when all ranks have come here. Error: kRuntime.
  virtual Result<void> barrier() = 0;
  // The ranks that give the same `color`, in this one's order. Error: kRuntime.
  virtual Result<std::unique_ptr<Communicator>> split(int color) = 0;

  // values[i] = the sum over ranks, added in the order of the ranks: every rank has the same bits,
  // whatever network and library carried them. Errors: those of all_gather.
  Result<void> all_reduce_sum(std::span<float> values);

  template <class T>
  Result<void> all_gather_values(std::span<const T> in, std::span<T> out) {
    return all_gather(std::as_bytes(in), std::as_writable_bytes(out));
  }

 private:
  std::vector<float> parts_;
};

// The one rank of a program that was started alone.
std::unique_ptr<Communicator> make_single_rank();

}  // namespace kernelpath::comm
