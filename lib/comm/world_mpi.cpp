#include "comm/world.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mpi.h>

// MPI's C interface. The thread that opens the world makes all calls (MPI_THREAD_FUNNELED).
namespace kernelpath::comm {
namespace {

// MPI counts with int.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

std::string text_of(int status) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(status, text.data(), &length) != MPI_SUCCESS) return "unknown error";
  return {text.data(), static_cast<std::size_t>(length)};
}

std::atomic<bool>& any_call_failed() {
  static std::atomic<bool> failed{false};
  return failed;
}

Result<void> check(int status, std::string_view call) {
  if (status == MPI_SUCCESS) return {};
  any_call_failed() = true;
  return fail(
      {.code = ErrorCode::kRuntime, .message = std::string(call) + " failed: " + text_of(status)});
}

class MpiCommunicator final : public Communicator {
 public:
  // Takes `handle`, unless it is that of the world.
  explicit MpiCommunicator(MPI_Comm handle) : handle_(handle) {
    MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(handle_, &rank_);
    MPI_Comm_size(handle_, &size_);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  ~MpiCommunicator() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (handle_ != MPI_COMM_WORLD && finalized == 0) MPI_Comm_free(&handle_);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  // In pieces where MPI cannot count all of it; each piece is put where it belongs.
  Result<void> all_gather(std::span<const std::byte> in, std::span<std::byte> out) override {
    if (in.size() <= kMostBytes) return gather(in, out.data());
    std::vector<std::byte> piece;
    for (std::size_t first = 0; first < in.size(); first += kMostBytes) {
      const std::size_t bytes = std::min(kMostBytes, in.size() - first);
      piece.resize(bytes * static_cast<std::size_t>(size_));
      KERNELPATH_CHECK_OK(gather(in.subspan(first, bytes), piece.data()));
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(size_); ++rank) {
        std::copy_n(piece.data() + rank * bytes, bytes, out.data() + rank * in.size() + first);
      }
    }
    return {};
  }

  Result<void> broadcast(std::span<std::byte> data, int root) override {
    for (std::size_t first = 0; first < data.size(); first += kMostBytes) {
      const std::size_t bytes = std::min(kMostBytes, data.size() - first);
      KERNELPATH_CHECK_OK(
          check(MPI_Bcast(data.data() + first, static_cast<int>(bytes), MPI_BYTE, root, handle_),
                "MPI_Bcast"));
    }
    return {};
  }

  Result<void> barrier() override { return check(MPI_Barrier(handle_), "MPI_Barrier"); }

  Result<std::unique_ptr<Communicator>> split(int color) override {
    MPI_Comm part = MPI_COMM_NULL;
    KERNELPATH_CHECK_OK(check(MPI_Comm_split(handle_, color, rank_, &part), "MPI_Comm_split"));
    return std::make_unique<MpiCommunicator>(part);
  }

 private:
  Result<void> gather(std::span<const std::byte> in, std::byte* out) {
    const int bytes = static_cast<int>(in.size());
    return check(MPI_Allgather(in.data(), bytes, MPI_BYTE, out, bytes, MPI_BYTE, handle_),
                 "MPI_Allgather");
  }

  MPI_Comm handle_;
  int rank_ = 0;
  int size_ = 1;
};

class MpiWorld final : public World {
 public:
  explicit MpiWorld(int ranks_on_host) : ranks_(MPI_COMM_WORLD), ranks_on_host_(ranks_on_host) {}
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;
  ~MpiWorld() override { MPI_Finalize(); }

  [[nodiscard]] Communicator& ranks() override { return ranks_; }
  [[nodiscard]] int ranks_on_host() const override { return ranks_on_host_; }
  [[nodiscard]] bool failed() const override { return any_call_failed(); }
  [[noreturn]] void end_all(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);  // where the library returned all the same
  }

 private:
  MpiCommunicator ranks_;
  int ranks_on_host_;
};

Result<int> count_host() {
  MPI_Comm host = MPI_COMM_NULL;
  KERNELPATH_CHECK_OK(
      check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
            "MPI_Comm_split_type"));
  int size = 1;
  MPI_Comm_size(host, &size);
  MPI_Comm_free(&host);
  return size;
}

std::string library_text() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "MPI";
  // "Open MPI v4.1.4, package: …": the name is enough.
  const std::string_view all(text.data(), static_cast<std::size_t>(length));
  return std::string(all.substr(0, all.find_first_of(",\n")));
}

}  // namespace

std::string_view mpi_library() {
  static const std::string kText = library_text();
  return kText;
}

Result<std::unique_ptr<World>> World::open() {
  int provided = MPI_THREAD_SINGLE;
  KERNELPATH_CHECK_OK(
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread"));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  KERNELPATH_TRY(on_host, count_host());
  auto out = std::make_unique<MpiWorld>(on_host);
  if (provided < MPI_THREAD_FUNNELED) {
    return fail({.code = ErrorCode::kUnavailable,
                 .message = "this MPI library does not allow a process to have other threads"});
  }
  return out;
}

}  // namespace kernelpath::comm
