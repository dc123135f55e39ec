#pragma once

#include "base/result.h"
#include "kernels/cuda/stream.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

// Devices, memory, streams, events and graphs of CUDA behind plain types: callers compile without
// the toolkit's headers. Failures carry the call, CUDA's name of the error and its text.
namespace kernelpath::kernels::cuda {

// What kernels and reports need to know of the current device.
struct DeviceInfo {
  std::string name;     // "NVIDIA H200"
  std::int32_t sm = 0;  // compute capability times ten: 90
  std::int32_t num_sms = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t shared_bytes_per_block = 0;  // with opt-in
  std::int32_t clock_khz = 0;               // highest SM clock
  std::int32_t driver = 0;                  // CUDA version of the driver: 13000
  std::int32_t runtime = 0;                 // CUDA version of this build
  std::string pci_bus_id = {};              // "0000:1b:00.0"
};

// How many devices there are; the error says why there are none (no driver, no device …).
Result<int> device_count();
// Makes `index` the calling thread's current device.
Result<void> use_device(int index);
// Of the current device.
Result<DeviceInfo> device_info();
// Free bytes of the current device's memory.
Result<std::int64_t> free_memory_bytes();
// Waits for everything on the current device; errors of earlier launches appear here.
Result<void> synchronize();

// Device memory with one owner. An allocation that fails is kResource and names both sizes.
class Buffer {
 public:
  static Result<Buffer> allocate(std::int64_t bytes);
  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  struct Release {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Release> data_;
  std::int64_t bytes_ = 0;
};

// Returns when the bytes are there, whatever stream reads them next. `from` may be pageable.
Result<void> copy_to_device(void* to, const void* from, std::int64_t bytes);
Result<void> copy_to_host(void* to, const void* from, std::int64_t bytes);
Result<void> copy_on_device(void* to, const void* from, std::int64_t bytes, StreamView stream);
Result<void> fill(void* data, std::uint8_t value, std::int64_t bytes, StreamView stream);

class Stream {
 public:
  static Result<Stream> create();
  [[nodiscard]] StreamView view() const { return {handle_.get()}; }
  [[nodiscard]] Result<void> wait() const;

 private:
  struct Release {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Release> handle_;
};

class Event {
 public:
  static Result<Event> create();
  [[nodiscard]] Result<void> record(StreamView stream) const;
  // From `begin` to this one; waits for this one.
  [[nodiscard]] Result<double> microseconds_since(const Event& begin) const;

 private:
  struct Release {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Release> handle_;
};

// Launches captured once and replayed with one call. Pointers and sizes that they were launched
// with stay as they were; what lies behind the pointers may change between replays.
class Graph {
 public:
  // Captures what `launch` puts on `stream` (which must not be the default one).
  static Result<Graph> capture(StreamView stream, const std::function<Result<void>()>& launch);
  [[nodiscard]] Result<void> replay(StreamView stream) const;

 private:
  struct Release {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Release> handle_;
};

}  // namespace kernelpath::kernels::cuda
