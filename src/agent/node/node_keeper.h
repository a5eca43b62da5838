/// Keeps the Node objects of this agent alive: addresses, node info, conditions, and a Lease every
/// ten seconds.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "agent/context.h"
#include "agent/node/devices.h"

namespace muster::agent {

class NodeKeeper {
 public:
  explicit NodeKeeper(Context& context)
      : context_(context), wake_(context.loop.make_signal()), ended_(context.loop.make_signal()) {}
  /// Called for each node that really runs pods, when it appears.
  void add(const std::string& node);
  void remove(const std::string& node) { nodes_.erase(node); }
  /// Something that all nodes report has changed.
  void report_again();
  void start();
  Task<void> stop();

 private:
  Task<void> run();
  bool seems_ready(const std::string& node) const;
  Task<void> renew_lease(std::string node);
  Task<void> report(std::string node);

  Context& context_;
  std::set<std::string> nodes_;
  std::set<std::string> fresh_;  // not yet reported
  std::vector<Gpu> gpus_;
  bool stopping_ = false;
  bool running_ = false;
  std::unique_ptr<Signal> wake_, ended_;
};

}  // namespace muster::agent
