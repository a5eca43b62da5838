/// Keeps the Endpoints and EndpointSlices of every Service with a selector.
///
/// A job of n pods has n Services, so neither may be searched for the other. Services are indexed
/// by the label keys their selectors use: for each such set of keys, pods are filed under their
/// values of it. A pod's change then finds its Services, and a Service its pods, by look-up; the
/// cost is the number of distinct key sets, a handful.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/env.h"
#include "client/client.h"
#include "client/work_queue.h"
#include "controllers/common/caches.h"

namespace muster::controllers::endpoints {

class Controller {
 public:
  Controller(Env& env, client::Client& client, Caches& caches, int workers);
  void start() { queue_->start(); }
  Task<void> stop();

 private:
  using Keys = std::vector<std::string>;
  struct Index {
    std::map<std::string, std::set<std::string>> services;  // "ns|values" -> keys of services
    std::map<std::string, std::set<std::string>> pods;      // "ns|values" -> keys of pods
  };
  void service_changed(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object);
  void pod_changed(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object);
  void file_pod(const Keys& keys, Index& index, const json::Value& pod, bool add);
  Task<Result<void>> work(std::string key);
  Task<Result<void>> apply(std::string ns, const Plan& plan);

  client::Client& client_;
  Caches& caches_;
  std::map<Keys, Index> indexes_;
  std::set<std::string> all_pods_;
  std::unique_ptr<client::WorkQueue> queue_;
};

}  // namespace muster::controllers::endpoints
