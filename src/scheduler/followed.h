/// The kinds that must be known before the first decision. On the loop.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "client/informer.h"

namespace muster::scheduler {

class Followed {
 public:
  explicit Followed(Env& env) : env_(env) {}

  void add(client::Informer& informer, const client::Resource& kind) {
    kinds_.emplace_back(&informer, kind);
  }
  [[nodiscard]] std::vector<std::string> unknown() const;
  [[nodiscard]] bool all_known() const;
  /// A kind that we may not see keeps everything waiting: says so in the log every half minute, so
  /// that whoever looks for the reason finds it at the end.
  void complain_later();
  void stop() { timer_.reset(); }

 private:
  Env& env_;
  std::vector<std::pair<client::Informer*, client::Resource>> kinds_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace muster::scheduler
