#pragma once

#include "attention/data_type.h"
#include "base/result.h"
#include "bench/measure.h"
#include "bench/random_data.h"
#include "bench/target.h"
#include "kernels/cpu/executor.h"
#include "kernels/cuda/device.h"

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

// What the cases on a CUDA device share.
namespace kernelpath::bench {

using kernels::cuda::Buffer;
using kernels::cuda::StreamView;

// Launches of a captured graph: one alone would time its replay.
inline constexpr std::int64_t kGraphLaunches = 20;

class CudaMachine {
 public:
  static Result<std::unique_ptr<CudaMachine>> open(int index);

  [[nodiscard]] const kernels::cuda::DeviceInfo& info() const { return info_; }
  [[nodiscard]] const DeviceFacts& facts() const { return facts_; }
  [[nodiscard]] StreamView stream() const { return stream_.view(); }
  // 4 bytes that kernels which only read leave behind.
  [[nodiscard]] std::uint32_t* sink() const {
    return reinterpret_cast<std::uint32_t*>(sink_.data());
  }
  // Computes references.
  kernels::cpu::CpuExecutor& host() { return host_; }

  // Device memory with random contents; 0 bytes give none.
  Result<Buffer> filled(std::int64_t bytes, const BitPattern& pattern);
  template <class T>
  Result<Buffer> copied(std::span<const T> values) {
    return copied_bytes(values.data(), static_cast<std::int64_t>(values.size_bytes()));
  }

  // How often data of `bytes` must lie there to be out of the L2 cache when their turn comes again.
  [[nodiscard]] std::int64_t copies(std::int64_t bytes, bool cold) const;
  [[nodiscard]] CacheState state(std::int64_t bytes, std::int64_t copies) const;

  // Bytes a second of reading runs of `run_bytes` in random order from memory that is far larger
  // than the cache; measured once a run length. Error kResource: no room for it.
  Result<double> gather_ceiling(std::int64_t run_bytes);
  // The same of reading in order.
  Result<double> linear_ceiling();

  // "" or what holds the clocks down at this moment, as NVML says it. facts() then has the clocks
  // that were seen at such moments.
  std::string throttled();

 private:
  CudaMachine(kernels::cuda::DeviceInfo info, kernels::cuda::Stream stream, Buffer sink);
  static Result<Buffer> copied_bytes(const void* data, std::int64_t bytes);
  // Bytes a second of a launch that reads `bytes`.
  Result<double> read_rate(std::int64_t bytes, std::function<Result<void>(StreamView)> launch);

  kernels::cuda::DeviceInfo info_;
  kernels::cuda::Stream stream_;
  Buffer sink_;
  DeviceFacts facts_;
  unsigned least_mhz_ = 0;
  unsigned most_mhz_ = 0;
  kernels::cpu::CpuExecutor host_;
  std::map<std::int64_t, double> ceilings_;  // by the bytes of a run; 0: in order
};

// Launches in a captured graph, replayed as often as a sample needs, between two events.
class GraphWorkload : public Workload {
 public:
  // Launch `pass` puts itself on the stream; called kGraphLaunches times, or `launches` times if
  // that is more. `before`, which may be empty, stands once at the start of the graph.
  struct Body {
    std::function<Result<void>(StreamView)> before;
    std::function<Result<void>(std::int64_t pass, StreamView)> launch;
    std::int64_t launches = kGraphLaunches;
  };
  static Result<std::unique_ptr<GraphWorkload>> capture(CudaMachine& machine, Body body);

  // Fewer launches than a graph has are launched one by one.
  Result<double> run(std::int64_t launches) override;
  [[nodiscard]] std::int64_t least_launches() const override { return body_.launches; }

 private:
  GraphWorkload(CudaMachine& machine, Body body, kernels::cuda::Event begin,
                kernels::cuda::Event end);
  [[nodiscard]] Result<void> launch_all(StreamView stream, std::int64_t launches) const;

  CudaMachine* machine_;
  Body body_;
  kernels::cuda::Event begin_;
  kernels::cuda::Event end_;
  kernels::cuda::Graph graph_;
};

// A job whose launches are captured once its data are in place.
class GraphJob : public Job {
 public:
  explicit GraphJob(CudaMachine& machine) : machine_(&machine) {}
  Result<double> run(std::int64_t launches) override { return work_->run(launches); }
  [[nodiscard]] std::int64_t least_launches() const override { return work_->least_launches(); }

 protected:
  [[nodiscard]] CudaMachine& machine() const { return *machine_; }
  // What run() launches; the last step of prepare().
  Result<void> capture(GraphWorkload::Body body);
  // Gives `buffer` memory of `bytes` with random contents.
  Result<void> fill(Buffer& buffer, std::int64_t bytes, const BitPattern& pattern);

 private:
  CudaMachine* machine_;
  std::unique_ptr<GraphWorkload> work_;
};

}  // namespace kernelpath::bench
