#include "net/loop/ports.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::net {
namespace {

TEST(Ports, OneThatSomebodyListensAtIsTaken) {
  for (const in_addr_t host : {htonl(INADDR_ANY), htonl(INADDR_LOOPBACK)}) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(listener, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = host;
    ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener, 1), 0);
    socklen_t size = sizeof address;
    ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_FALSE(port_is_free(ntohs(address.sin_port)));
    ::close(listener);
    EXPECT_TRUE(port_is_free(ntohs(address.sin_port)));
  }
}

}  // namespace
}  // namespace muster::net
