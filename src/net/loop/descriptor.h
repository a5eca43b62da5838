/// File descriptors of the kernel (pipes, terminals, unix sockets) on the loop.
#pragma once

#include <memory>

#include "net/http/http.h"
#include "net/loop/loop.h"

namespace muster::net {

/// Waits for a descriptor that it owns; reading and writing are the owner's own system calls.
class Descriptor {
 public:
  virtual ~Descriptor() = default;
  [[nodiscard]] virtual int fd() const = 0;
  /// False when the descriptor was closed meanwhile.
  virtual Task<bool> readable() = 0;
  virtual Task<bool> writable() = 0;
  /// Wakes those who wait.
  virtual void close() = 0;
};

/// Takes the descriptor over and makes it non-blocking.
std::unique_ptr<Descriptor> make_descriptor(Loop& loop, int fd);
/// The same as a stream of bytes. EIO counts as the end (a terminal whose other side is gone).
std::unique_ptr<ByteStream> make_fd_stream(Loop& loop, int fd);
/// Says that nothing more will be written to a stream made here, if it is a connection: the peer
/// reads an end, and can still be read.
void end_writing(ByteStream& stream);
/// A TCP connection to an IPv4 address of this machine or its pods.
Task<Result<std::unique_ptr<ByteStream>>> connect_tcp(Loop& loop,
                                                      std::string address,
                                                      int port,
                                                      Duration timeout);

}  // namespace muster::net
