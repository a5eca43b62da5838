#include "agent/process/conntrack.h"

#include <gtest/gtest.h>

namespace muster::agent::process {
namespace {

Fence fence(bool inbound, std::vector<Fence::Way> ways) {
  Fence out;
  out.inbound = inbound;
  out.pods = {"10.244.0.2"};
  out.ways = std::move(ways);
  return out;
}

TEST(Conntrack, ConnectionsAreHeldToFencesAsPacketsAre) {
  const std::vector<std::string> machine = {"10.244.0.1"};
  const Connection in{"10.244.0.9", "10.244.0.2", "TCP", 8080};
  const Connection out{"10.244.0.2", "10.244.0.9", "TCP", 8080};
  const std::vector<Fence> closed = {fence(true, {})};
  EXPECT_FALSE(passes(closed, machine, in));
  EXPECT_TRUE(passes(closed, machine, out));
  EXPECT_TRUE(passes({}, machine, in));
  EXPECT_TRUE(passes(closed, machine, {"10.244.0.1", "10.244.0.2", "TCP", 8080}));
  EXPECT_TRUE(passes(closed, machine, {"10.244.0.9", "10.244.0.3", "TCP", 8080}));
  EXPECT_FALSE(passes({fence(false, {})}, machine, out));

  const Fence::Way way{{"10.244.0.8/31"}, {{"TCP", 8000, 8080}}};
  const std::vector<Fence> some = {fence(true, {way})};
  EXPECT_TRUE(passes(some, machine, in));
  EXPECT_FALSE(passes(some, machine, {"10.244.0.10", "10.244.0.2", "TCP", 8080}));
  EXPECT_FALSE(passes(some, machine, {"10.244.0.9", "10.244.0.2", "UDP", 8080}));
  EXPECT_FALSE(passes(some, machine, {"10.244.0.9", "10.244.0.2", "TCP", 8081}));
  EXPECT_FALSE(passes(some, machine, {"10.244.0.9", "10.244.0.2", "", 0}));
  const Fence::Way anywhere{{"0.0.0.0/0"}, {}};
  EXPECT_TRUE(passes({fence(true, {anywhere})}, machine, {"192.0.2.1", "10.244.0.2", "", 0}));
}

}  // namespace
}  // namespace muster::agent::process
