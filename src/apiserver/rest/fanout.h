/// Sends one change to many watchers.
///
/// A watch that waits for nothing but news leaves its lines here while changes are published; once
/// the loop's turn is over they all go out together, spread over the loop's thread and the workers,
/// because encrypting and sending costs several microseconds a watcher. In-process watchers are
/// served first. Everything is called on the loop.
#pragma once

#include <vector>

#include "apiserver/registry/image.h"
#include "net/http/http.h"

namespace muster::apiserver {

class Fanout {
 public:
  /// One watcher. Its lines are for one write; they stay when the writer took none of them.
  class Target {
   public:
    explicit Target(net::ResponseWriter& writer) : writer_(writer) {}
    virtual ~Target() = default;
    Target(const Target&) = delete;
    /// The lines were sent, kept by the writer, or (kBusy) not taken.
    virtual void on_sent(net::ResponseWriter::Now result) = 0;

   protected:
    std::vector<Bytes> lines_;
    std::size_t line_bytes_ = 0;

   private:
    friend class Fanout;
    /// `room` is where several lines are put together; it is used again as long as no writer keeps
    /// it.
    void send(std::shared_ptr<std::string>& room);
    net::ResponseWriter& writer_;
    net::ResponseWriter::Now result_ = net::ResponseWriter::Now::kBusy;
    bool listed_ = false;
  };

  explicit Fanout(Env& env) : env_(env) {}
  ~Fanout() { *alive_ = false; }
  Fanout(const Fanout&) = delete;

  /// Sends the target's lines when this turn of the loop is over.
  void add(Target& target);
  void remove(Target& target);

 private:
  void flush();

  Env& env_;
  std::vector<Target*> targets_;
  bool posted_ = false;
  std::shared_ptr<std::string> room_;  // for those whose writers keep nothing (writes_aside)
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::apiserver
