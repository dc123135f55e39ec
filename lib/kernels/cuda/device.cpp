#include "kernels/cuda/device.h"

#include "kernels/cuda/status.h"

#include <fmt/format.h>

#include <array>
#include <cuda_runtime_api.h>
#include <utility>

namespace kernelpath::kernels::cuda {
namespace {

cudaStream_t stream_of(StreamView view) { return static_cast<cudaStream_t>(view.handle); }

ErrorCode code_of(cudaError_t status) {
  switch (status) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorInvalidDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInitializationError:
      return ErrorCode::kUnavailable;
    case cudaErrorMemoryAllocation:
      return ErrorCode::kResource;
    default:
      return ErrorCode::kRuntime;
  }
}

std::string hint_of(cudaError_t status) {
  switch (status) {
    case cudaErrorNoKernelImageForDevice:
      return "build with KERNELPATH_CUDA_ARCHS naming this device's architecture";
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
      return "install a driver that is as new as the CUDA runtime of this build";
    case cudaErrorNoDevice:
      return "run on a machine with an NVIDIA GPU, or choose the CPU";
    default:
      return {};
  }
}

}  // namespace

Result<void> check_status(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return {};
  // The status stays with the thread otherwise and would be taken for that of a later launch.
  static_cast<void>(cudaGetLastError());
  return fail({.code = code_of(status),
               .message = fmt::format("{} failed with {}: {}", call, cudaGetErrorName(status),
                                      cudaGetErrorString(status)),
               .hint = hint_of(status)});
}

Result<int> device_count() {
  int count = 0;
  KERNELPATH_CHECK_OK(check_status(cudaGetDeviceCount(&count), "cudaGetDeviceCount"));
  return count;
}

Result<void> use_device(int index) { return check_status(cudaSetDevice(index), "cudaSetDevice"); }

Result<DeviceInfo> device_info() {
  int index = 0;
  KERNELPATH_CHECK_OK(check_status(cudaGetDevice(&index), "cudaGetDevice"));
  cudaDeviceProp properties{};
  KERNELPATH_CHECK_OK(
      check_status(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties"));
  DeviceInfo info{
      .name = std::string(&properties.name[0]),
      .sm = properties.major * 10 + properties.minor,
      .num_sms = properties.multiProcessorCount,
      .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
      .l2_bytes = properties.l2CacheSize,
      .shared_bytes_per_block = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin)};
  KERNELPATH_CHECK_OK(
      check_status(cudaDeviceGetAttribute(&info.clock_khz, cudaDevAttrClockRate, index),
                   "cudaDeviceGetAttribute"));
  std::array<char, 32> bus = {};
  KERNELPATH_CHECK_OK(
      check_status(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index),
                   "cudaDeviceGetPCIBusId"));
  info.pci_bus_id = bus.data();
  KERNELPATH_CHECK_OK(check_status(cudaDriverGetVersion(&info.driver), "cudaDriverGetVersion"));
  KERNELPATH_CHECK_OK(check_status(cudaRuntimeGetVersion(&info.runtime), "cudaRuntimeGetVersion"));
  return info;
}

Result<std::int64_t> free_memory_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  KERNELPATH_CHECK_OK(check_status(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
  return static_cast<std::int64_t>(free);
}

Result<void> synchronize() {
  return check_status(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void Buffer::Release::operator()(std::byte* data) const { static_cast<void>(cudaFree(data)); }

Result<Buffer> Buffer::allocate(std::int64_t bytes) {
  Buffer buffer;
  if (bytes <= 0) return buffer;
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    const auto free = free_memory_bytes();
    return fail(
        {.code = ErrorCode::kResource,
         .message = fmt::format("{} bytes of device memory were asked for and {} are free", bytes,
                                free ? *free : 0),
         .hint = "ask for a smaller batch or context, or free the device for this process"});
  }
  KERNELPATH_CHECK_OK(check_status(status, "cudaMalloc"));
  buffer.data_.reset(static_cast<std::byte*>(data));
  buffer.bytes_ = bytes;
  return buffer;
}

Result<void> copy_to_device(void* to, const void* from, std::int64_t bytes) {
  KERNELPATH_CHECK_OK(check_status(
      cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice), "cudaMemcpy"));
  // A copy from pageable memory returns once it is staged. The rest of it is the default stream's,
  // for which streams of our own do not wait.
  return check_status(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

Result<void> copy_to_host(void* to, const void* from, std::int64_t bytes) {
  return check_status(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost),
                      "cudaMemcpy");
}

Result<void> copy_on_device(void* to, const void* from, std::int64_t bytes, StreamView stream) {
  return check_status(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes),
                                      cudaMemcpyDeviceToDevice, stream_of(stream)),
                      "cudaMemcpyAsync");
}

Result<void> fill(void* data, std::uint8_t value, std::int64_t bytes, StreamView stream) {
  return check_status(
      cudaMemsetAsync(data, value, static_cast<std::size_t>(bytes), stream_of(stream)),
      "cudaMemsetAsync");
}

void Stream::Release::operator()(void* handle) const {
  static_cast<void>(cudaStreamDestroy(static_cast<cudaStream_t>(handle)));
}

Result<Stream> Stream::create() {
  cudaStream_t handle = nullptr;
  KERNELPATH_CHECK_OK(check_status(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking),
                                   "cudaStreamCreateWithFlags"));
  Stream stream;
  stream.handle_.reset(handle);
  return stream;
}

Result<void> Stream::wait() const {
  return check_status(cudaStreamSynchronize(stream_of(view())), "cudaStreamSynchronize");
}

void Event::Release::operator()(void* handle) const {
  static_cast<void>(cudaEventDestroy(static_cast<cudaEvent_t>(handle)));
}

Result<Event> Event::create() {
  cudaEvent_t handle = nullptr;
  KERNELPATH_CHECK_OK(check_status(cudaEventCreate(&handle), "cudaEventCreate"));
  Event event;
  event.handle_.reset(handle);
  return event;
}

Result<void> Event::record(StreamView stream) const {
  return check_status(cudaEventRecord(static_cast<cudaEvent_t>(handle_.get()), stream_of(stream)),
                      "cudaEventRecord");
}

Result<double> Event::microseconds_since(const Event& begin) const {
  auto* const end = static_cast<cudaEvent_t>(handle_.get());
  KERNELPATH_CHECK_OK(check_status(cudaEventSynchronize(end), "cudaEventSynchronize"));
  float milliseconds = 0;
  KERNELPATH_CHECK_OK(check_status(
      cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(begin.handle_.get()), end),
      "cudaEventElapsedTime"));
  return static_cast<double>(milliseconds) * 1e3;
}

void Graph::Release::operator()(void* handle) const {
  static_cast<void>(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(handle)));
}

Result<Graph> Graph::capture(StreamView stream, const std::function<Result<void>()>& launch) {
  auto* const on = stream_of(stream);
  KERNELPATH_CHECK_OK(check_status(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal),
                                   "cudaStreamBeginCapture"));
  const Result<void> launched = launch();
  cudaGraph_t captured = nullptr;
  const Result<void> ended =
      check_status(cudaStreamEndCapture(on, &captured), "cudaStreamEndCapture");
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)> owned(
      captured, &cudaGraphDestroy);
  KERNELPATH_CHECK_OK(launched);
  KERNELPATH_CHECK_OK(ended);
  cudaGraphExec_t handle = nullptr;
  KERNELPATH_CHECK_OK(
      check_status(cudaGraphInstantiate(&handle, captured, 0), "cudaGraphInstantiate"));
  Graph graph;
  graph.handle_.reset(handle);
  return graph;
}

Result<void> Graph::replay(StreamView stream) const {
  return check_status(
      cudaGraphLaunch(static_cast<cudaGraphExec_t>(handle_.get()), stream_of(stream)),
      "cudaGraphLaunch");
}

}  // namespace kernelpath::kernels::cuda
