#include "cli/run_ranks.h"

#include "base/file.h"
#include "base/processors.h"
#include "base/text.h"
#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <new>
#include <thread>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

constexpr std::size_t kMaxInputBytes = std::size_t{256} << 20;

// Where a silenced rank may still say why it ends all others; -1: not silenced.
int& kept_error_stream() {
  static int descriptor = -1;
  return descriptor;
}

Result<std::string> own_input() {
  if (is_terminal(STDIN_FILENO)) return std::string();
  return read_stream(STDIN_FILENO, "standard input", kMaxInputBytes);
}

// `text` becomes what this process reads from standard input.
Result<void> replace_input(const std::string& text) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  const bool written = file != nullptr &&
                       std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fflush(file.get()) == 0 && std::fseek(file.get(), 0, SEEK_SET) == 0 &&
                       dup2(fileno(file.get()), STDIN_FILENO) >= 0;
  if (written) return {};
  return fail({.code = ErrorCode::kRuntime,
               .message = "standard input could not be passed on to this rank"});
}

}  // namespace

void silence_other_ranks() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const std::string_view name : comm::launch_variables()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): there are no other threads yet
    const char* const value = std::getenv(std::string(name).c_str());
    if (value != nullptr) variables.emplace_back(name, value);
  }
  if (comm::launch_of(variables).rank == 0) return;
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  kept_error_stream() = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  close(nowhere);
}

RunRanks::RunRanks(const Invocation& invocation)
    : invocation_(invocation), launch_(comm::launch_of(invocation.environment.variables)) {}

RunRanks::~RunRanks() = default;

Result<void> RunRanks::open(std::int64_t tp, std::int64_t dcp) {
  plan(tp, dcp);
  if (tp == 1 && dcp == 1 && launch_.size == 1) return {};
  KERNELPATH_TRY(world, comm::World::open());
  world_ = std::move(world);
  KERNELPATH_TRY(grid, comm::RankGrid::make(world_->ranks(), tp, dcp));
  grid_.emplace(std::move(grid));
  placement_ = grid_->placement();
  return {};
}

int RunRanks::default_threads() const {
  const auto all = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  return std::max(std::min(usable_processors(), all / ranks_on_host()), 1);
}

Result<void> RunRanks::share_input(bool wanted) {
  if (!wanted || !several()) return {};
  std::string text;
  Result<void> read;
  if (is_first()) {
    Result<std::string> own = own_input();
    if (own) {
      text = std::move(*own);
    } else {
      read = fail(std::move(own).error());
    }
  }
  KERNELPATH_CHECK_OK(comm::agree(*placement_.world, read));
  KERNELPATH_CHECK_OK(comm::broadcast_text(*placement_.world, text));
  const bool is_read_by_itself = is_first() && is_terminal(STDIN_FILENO);
  return is_read_by_itself ? Result<void>() : replace_input(text);
}

Result<std::vector<std::string>> RunRanks::lines_of_all(const std::vector<std::string>& own) {
  if (!several()) return own;
  std::vector<std::string> out;
  for (int rank = 0; rank < placement_.world->size(); ++rank) {
    std::string text = join(own, "\n");
    KERNELPATH_CHECK_OK(comm::broadcast_text(*placement_.world, text, rank));
    for (std::string& line : split(text, '\n')) {
      const bool known = line.empty() || std::ranges::find(out, line) != out.end();
      if (!known) out.push_back(std::move(line));
    }
  }
  return out;
}

Result<NextStep> RunRanks::next_step(const RankState& state) {
  std::array<std::uint64_t, 3> own{state.stopped ? 1U : 0U, state.unread ? 1U : 0U, state.tokens};
  std::vector<std::uint64_t> all(own.begin(), own.end());
  if (several()) {
    KERNELPATH_CHECK_OK(comm::agree(*placement_.world, state.fared));
    all.resize(own.size() * static_cast<std::size_t>(placement_.world->size()));
    KERNELPATH_CHECK_OK(placement_.world->all_gather_values<std::uint64_t>(own, all));
  } else if (!state.fared) {
    return fail(state.fared.error());
  }
  bool stopped = false;
  bool unread = false;
  for (std::size_t at = 0; at < all.size(); at += own.size()) {
    stopped = stopped || all[at] != 0;
    unread = unread || all[at + 1] != 0;
    if (all[at + 2] != all[2]) {
      return fail({.code = ErrorCode::kInternal,
                   .message = "rank " + std::to_string(at / own.size()) +
                              " has drawn other tokens than rank 0"});
    }
  }
  if (stopped) return NextStep::kCancel;
  return unread ? NextStep::kEnd : NextStep::kRun;
}

Result<int> RunRanks::run(const std::function<Result<int>()>& body) {
  const auto talk_failed = [&] { return world_ && world_->failed(); };
  try {
    Result<int> own = body();
    if (!own && talk_failed()) end_all(own.error());
    Result<int> all = agree_on_code(std::move(own));
    if (!all && talk_failed()) end_all(all.error());
    return all;
  } catch (const std::exception& error) {
    if (!several()) throw;
    end_all(error_of(error));
    throw;
  }
}

Result<int> RunRanks::agree_on_code(Result<int> own) {
  if (!several()) return own;
  KERNELPATH_TRY(code, agree_on(std::move(own)));
  const std::array<int, 1> mine{code};
  std::vector<int> all(static_cast<std::size_t>(placement_.world->size()));
  KERNELPATH_CHECK_OK(placement_.world->all_gather_values<int>(mine, all));
  return *std::ranges::max_element(all);
}

// Does not return where there are several ranks.
void RunRanks::end_all(const Error& error) {
  if (!world_) return;
  Error named = error;
  if (!is_first()) named.message = "rank " + std::to_string(launch_.rank) + ": " + named.message;
  const int stream = kept_error_stream() < 0 ? STDERR_FILENO : kept_error_stream();
  Log(std::string(invocation_.program.name), invocation_.log.style(), stream).error(named);
  world_->end_all(error_info(error.code).exit_code);
}

}  // namespace kernelpath::cli
