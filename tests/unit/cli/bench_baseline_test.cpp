#include "cli/bench_baseline.h"

#include <gmock/gmock.h>

namespace kernelpath::cli {
namespace {

bench::PeerRow peer_row(const std::string& name, std::optional<double> median_s) {
  return {.name = name, .median_s = median_s, .reason = median_s ? "" : "not there"};
}

TEST(AddPeers, PeerThatTheRunTimed_KeepsItsTime) {
  bench::Row row;
  row.peers = {peer_row("cudnn_paged", 1.0)};
  add_peers({peer_row("cudnn_paged", 2.0), peer_row("torch", 3.0)}, row);
  ASSERT_THAT(row.peers, testing::SizeIs(2));
  EXPECT_EQ(row.peers[0].median_s, 1.0);
  EXPECT_EQ(row.peers[1].name, "torch");
}

TEST(AddPeers, PeerWithoutATime_GivesWayToOneWith) {
  bench::Row row;
  row.peers = {peer_row("cudnn_paged", std::nullopt)};
  add_peers({peer_row("cudnn_paged", std::nullopt), peer_row("cudnn_paged", 2.0)}, row);
  ASSERT_THAT(row.peers, testing::SizeIs(1));
  EXPECT_EQ(row.peers[0].median_s, 2.0);
  EXPECT_EQ(row.peers[0].reason, "");
}

}  // namespace
}  // namespace kernelpath::cli
