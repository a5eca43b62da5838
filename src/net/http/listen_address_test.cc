#include "net/http/listen_address.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {

TEST(ListenAddress, IsReadAsPeopleWriteIt) {
  struct Case {
    const char* text;
    const char* address;
    int port;
  };
  for (const auto& c : {Case{"127.0.0.1:6443", "127.0.0.1", 6443},
                        Case{":9090", "0.0.0.0", 9090},
                        Case{"[::1]:0", "::1", 0},
                        Case{"box.example:80", "box.example", 80}}) {
    const auto where = parse_listen("--listen", c.text);
    ASSERT_TRUE(where) << where.error().message;
    EXPECT_EQ(where->address, c.address);
    EXPECT_EQ(where->port, c.port);
  }
  for (const char* wrong : {"127.0.0.1", "127.0.0.1:", "127.0.0.1:http", ":70000", ""}) {
    const auto where = parse_listen("--listen", wrong);
    ASSERT_FALSE(where) << wrong;
    EXPECT_TRUE(where.error().message.starts_with("--listen ")) << where.error().message;
  }
}

}  // namespace
}  // namespace muster::net
