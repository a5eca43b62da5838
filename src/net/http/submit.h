/// What a client can do whose requests share connections (HTTP/2). Many small requests that differ
/// in target and body alone, and of which only the end is of interest, bindings and events by the
/// thousand, cost no coroutine and no copy of their head; watches need no connection of their own.
/// Everything runs on the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/http/client.h"

namespace muster::net {

/// What they have in common, kept by whoever sends them.
struct CommonHead {
  std::string method;
  Headers headers;
};

class Submitter {
 public:
  virtual ~Submitter() = default;
  /// `done` is called after submit() has returned. Of an answer from 200 to 299 nothing but the
  /// status is kept.
  using Done = std::function<void(Result<Response>)>;
  virtual void submit(std::shared_ptr<const CommonHead> head,
                      std::string target,
                      std::string body,
                      Done done) = 0;

  struct Opened {
    std::unique_ptr<ResponseStream> stream;
    bool paced = false;  // shares a connection, which gathers what comes while there is much of it
  };
  /// For a stream that is read as it comes: beside other requests where the server speaks HTTP/2
  /// and has room, else like Client::stream().
  virtual Task<Result<Opened>> stream_beside(Request request) = 0;
};

/// Null for a client that has no connections, such as the one into this process.
inline Submitter* submitter_of(Client& client) { return dynamic_cast<Submitter*>(&client); }

}  // namespace muster::net
