/// HiveD's HTTP face: the extender verbs of kube-scheduler (filter, preempt, bind) and the inspect
/// API, as a function from a request to an answer. It also keeps what HiveD's framework keeps:
/// which pods are known and how far each is (Waiting, Preempting, Binding, Bound), and which nodes
/// exist.
///
/// Nothing here touches the network: the caller feeds node and pod events, hands in requests, and
/// posts the Binding that an answer may carry to the API server.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cells/allocator.h"
#include "hived/config.h"
#include "json/json.h"

namespace muster::hived {

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string location;  // of a redirect

  /// To be posted to /api/v1/namespaces/NS/pods/NAME/binding; null: nothing is.
  json::Value binding;
  /// The API server decides: answer with Extender::bound() when it has. Otherwise the binding is sent
  /// beside the answer.
  bool waits_for_binding = false;
  /// How long the answer is to be held back.
  Duration hold{};
};

class Extender {
 public:
  static Result<Extender> create(const Config& config);

  void node_added(const std::string& name, bool healthy);
  void node_updated(const std::string& name, bool healthy) { node_added(name, healthy); }
  void node_deleted(const std::string& name);
  /// Kubernetes objects; those that are of no interest, and completed ones, are sorted out here.
  void pod_added(const json::Value& pod, Time now);
  void pod_updated(const json::Value& pod, Time now);
  void pod_deleted(const json::Value& pod);

  HttpAnswer handle(std::string_view method,
                    std::string_view path,
                    std::string_view body,
                    Time now);
  /// The answer to a bind request, now that the API server has answered its binding with this HTTP
  /// status.
  [[nodiscard]] static HttpAnswer bound(const json::Value& binding, int status);

  const engine::cells::CellAllocator& allocator() const { return allocator_; }
  /// What was odd but passed over, newest last; taken by the caller's log.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

 private:
  enum class PodState : std::uint8_t { kWaiting, kPreempting, kBinding, kBound };
  struct Pod {
    engine::cells::PodRef ref;
    std::string ns, name;
    PodState state = PodState::kWaiting;
    bool allocated = false;  // the allocator counts it
    engine::cells::PodSpec spec;
    engine::cells::BindInfo bind;
    json::Object bind_annotations;
    std::int32_t attempts = 0;
    std::string group;  // last one scheduled with
  };
  struct Failure {
    int code;
    std::string message;
  };
  template <typename T>
  using Outcome = tl::expected<T, Failure>;

  Extender(engine::cells::CellAllocator allocator, Config config)
      : allocator_(std::move(allocator)), config_(std::move(config)) {}

  void add_pod(const json::Value& pod, Time now);
  void remove_pod(const std::string& uid);
  void add_bound(Pod& pod, const json::Value& object, Time now);

  HttpAnswer filter(std::string_view body, Time now);
  HttpAnswer preempt(std::string_view body, Time now);
  HttpAnswer bind(std::string_view body);
  HttpAnswer inspect(std::string_view method, std::string_view path);
  Outcome<json::Value> filter_pod(const json::Value& request, Time now, HttpAnswer& answer);
  Outcome<json::Value> preempt_pod(const json::Value& request, Time now);
  /// The binding to be posted.
  Outcome<json::Value> bind_pod(const json::Value& request);
  Outcome<Pod*> find_pod(const std::string& uid, const std::string& label, const char* routine);
  Outcome<engine::cells::Decision> schedule(Pod& pod,
                                            const json::Value& object,
                                            engine::cells::Phase phase,
                                            const std::vector<std::string>& suggested,
                                            const char* routine,
                                            Time now);
  void assume(Pod& pod, const json::Value& object, const engine::cells::BindInfo& bind, Time now);
  bool should_force(const Pod& pod, const std::vector<std::string>& suggested) const;
  [[nodiscard]] static json::Value binding_of(const Pod& pod);

  engine::cells::CellAllocator allocator_;
  Config config_;
  std::map<std::string, Pod> pods_;          // by UID
  std::map<std::string, std::string> uids_;  // by namespace/name
  std::map<std::string, bool> nodes_;
  std::vector<std::string> warnings_;
};

}  // namespace muster::hived
