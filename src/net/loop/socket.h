/// What plain and TLS streams do alike with a socket and with gathered buffers. Seen by net's own
/// .cc files only.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <string>
#include <vector>

namespace muster::net {

/// "127.0.0.1:6443" of the other end; empty when it has gone.
std::string address_of(const boost::asio::ip::tcp::socket& socket);
/// Open, nothing to read, no end of stream.
bool socket_is_quiet(boost::asio::ip::tcp::socket& socket);
void close_socket(boost::asio::ip::tcp::socket& socket);

/// Unix sockets, as descriptors that a tcp::socket or tcp::acceptor takes over: reading, writing
/// and accepting are the same calls for both, so nothing above has to know. -1 with errno. A file
/// in the way of listening is removed; the new one has mode 0600.
int connect_unix(const std::string& path);
int listen_unix(const std::string& path);

/// Asks for a line of memory without waiting for it.
inline void fetch(const void* address) { __builtin_prefetch(address); }

/// Walks over buffers in pieces as large as one write should be: small neighbours are copied
/// together.
class Pieces {
 public:
  explicit Pieces(const std::vector<boost::asio::const_buffer>& buffers) : buffers_(buffers) {}

  /// Empty at the end. The same piece again until took() says that it, or a part of it, is done.
  boost::asio::const_buffer next(char* room, std::size_t room_bytes) {
    while (at_ < buffers_.size() && buffers_[at_].size() == offset_) {
      ++at_;
      offset_ = 0;
    }
    if (at_ == buffers_.size()) return {};
    const auto first = buffers_[at_] + offset_;
    if (first.size() >= room_bytes || at_ + 1 == buffers_.size()) return first;
    std::size_t filled = 0;
    auto from = offset_;
    for (auto i = at_; i < buffers_.size() && filled < room_bytes; ++i) {
      const auto rest = buffers_[i] + from;
      from = 0;
      const auto bytes = std::min(rest.size(), room_bytes - filled);
      if (bytes > 0)
        std::memcpy(room + filled, rest.data(), bytes);  // an empty buffer may have no address
      filled += bytes;
    }
    return {room, filled};
  }

  void took(std::size_t bytes) {
    while (bytes > 0) {
      const auto here = std::min(bytes, buffers_[at_].size() - offset_);
      offset_ += here;
      bytes -= here;
      if (offset_ == buffers_[at_].size()) {
        ++at_;
        offset_ = 0;
      }
    }
  }

 private:
  const std::vector<boost::asio::const_buffer>& buffers_;
  std::size_t at_ = 0, offset_ = 0;
};

}  // namespace muster::net
