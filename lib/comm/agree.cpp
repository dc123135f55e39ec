#include "comm/agree.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kernelpath::comm {
namespace {

constexpr std::int32_t kWell = -1;

// The parts of an error, each behind its length.
std::string pack(const Error& error) {
  std::string out;
  const auto add = [&](const std::string& part) {
    const auto length = static_cast<std::uint64_t>(part.size());
    std::array<char, sizeof(length)> bytes{};
    std::memcpy(bytes.data(), &length, sizeof(length));
    out.append(bytes.data(), bytes.size());
    out += part;
  };
  for (const std::string* part :
       {&error.message, &error.file, &error.where, &error.value, &error.hint}) {
    add(*part);
  }
  for (const std::string& match : error.near_matches) add(match);
  return out;
}

Error unpack(ErrorCode code, std::string_view packed) {
  std::vector<std::string> parts;
  std::uint64_t length = 0;
  while (packed.size() >= sizeof(length)) {
    std::memcpy(&length, packed.data(), sizeof(length));
    packed.remove_prefix(sizeof(length));
    parts.emplace_back(packed.substr(0, length));
    packed.remove_prefix(parts.back().size());
  }
  Error out{.code = code};
  std::size_t next = 0;
  for (std::string* part : {&out.message, &out.file, &out.where, &out.value, &out.hint}) {
    if (next < parts.size()) *part = parts[next++];
  }
  out.near_matches.assign(parts.begin() + static_cast<std::ptrdiff_t>(next), parts.end());
  return out;
}

}  // namespace

Result<void> agree(Communicator& ranks, const Result<void>& own) {
  if (ranks.size() == 1) return own;
  const std::array<std::int32_t, 1> code{own ? kWell : static_cast<std::int32_t>(own.error().code)};
  std::vector<std::int32_t> codes(static_cast<std::size_t>(ranks.size()));
  KERNELPATH_CHECK_OK(ranks.all_gather_values<std::int32_t>(code, codes));
  for (std::size_t rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank] == kWell) continue;
    const int failed = static_cast<int>(rank);
    std::string packed = ranks.rank() == failed ? pack(own.error()) : std::string();
    KERNELPATH_CHECK_OK(broadcast_text(ranks, packed, failed));
    Error error = unpack(static_cast<ErrorCode>(codes[rank]), packed);
    if (failed > 0) error.message = "rank " + std::to_string(failed) + ": " + error.message;
    return fail(std::move(error));
  }
  return {};
}

Result<void> broadcast_text(Communicator& ranks, std::string& text, int root) {
  std::array<std::uint64_t, 1> length{text.size()};
  KERNELPATH_CHECK_OK(ranks.broadcast(std::as_writable_bytes(std::span(length)), root));
  text.resize(length[0]);
  return ranks.broadcast(std::as_writable_bytes(std::span(text)), root);
}

}  // namespace kernelpath::comm
