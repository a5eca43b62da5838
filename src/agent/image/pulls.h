/// Sees to it that images are there: pull policies, back-off, one pull for all who want the same,
/// a few at a time, and a kubelet's words for everything (pkg/kubelet/images, 1.37). On the loop.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/image/credentials.h"
#include "agent/image/image_file.h"
#include "agent/image/image_store.h"
#include "base/env.h"

namespace muster::agent::image {

struct ImageWish {
  std::string pod_uid;
  std::string image;   // as the pod names it
  std::string policy;  // Always, IfNotPresent, Never
  Credentials credentials;
};

/// Something that people should know, as an event of the pod.
struct Told {
  bool warning = false;
  const char* reason = "";
  std::string message;
};
using Tell = std::function<void(const Told&)>;

struct Fetched {
  std::optional<Image> image;
  /// Without an image: how the container waits, and for how long.
  std::string reason, message;
  Duration retry{};
};

struct PullOptions {
  std::string directory;  // who pulled what is remembered there
  int parallel_max = 3;
  std::vector<Registry> registries;
};

class Pulls {
 public:
  Pulls(Env& loop, PulledImages& store, PullOptions options);
  ~Pulls();

  /// The quick way: the image is there, the policy lets it be used and the pod may use it. Absent:
  /// it takes ensure(), which tells why.
  Task<std::optional<Image>> find(const ImageWish& wish);
  /// May take as long as a pull.
  Task<Fetched> ensure(ImageWish wish, Tell tell);
  /// When the image came, was first seen here, or was last wanted by a container.
  [[nodiscard]] Time last_used(const std::string& id);
  void forget(const std::string& id);
  /// Called when an image has come.
  std::function<void()> on_change;

 private:
  struct Pull;
  struct BackOff {
    Duration span{};
    Time until, updated;
    std::string reason, message;  // of the last failure
  };

  Task<Fetched> use(const ImageWish& wish, Reference ref, StoredImage stored);
  Task<Fetched> fetch(const ImageWish& wish, Reference ref, Tell tell);
  std::shared_ptr<Pull> join(const std::string& name, std::vector<Login> logins);
  Task<void> work(std::shared_ptr<Pull> pull, std::shared_ptr<bool> alive);
  Task<void> try_logins(std::shared_ptr<Pull> pull);
  Task<void> tell_progress(std::shared_ptr<Pull> pull, std::shared_ptr<bool> alive);
  Task<void> take_turn();
  void give_turn();
  [[nodiscard]] bool may_use(const std::string& id, const std::vector<Login>& logins) const;
  [[nodiscard]] Image make_image(const Reference& ref, const LoadedImage& loaded);
  Fetched failed(const ImageWish& wish, const std::string& error, const Tell& tell);
  void remember(const std::string& id, const Login& login, bool of_machine);
  void save() const;

  Env& loop_;
  PulledImages& store_;
  PullOptions options_;
  Credentials of_machine_;  // of the image file's registries: anybody's
  std::map<std::string, std::shared_ptr<Pull>> under_way_;
  std::map<std::string, BackOff> back_offs_;  // by pod and image
  int free_;
  std::deque<Signal*> queue_;
  /// Image id -> logins it was pulled with; "" for none, so that everybody may use it. Images that
  /// are not listed were there before, or imported: everybody's.
  std::map<std::string, std::set<std::string>> pulled_with_;
  std::map<std::string, Time> used_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Where a pod's images come from, as its worker sees it.
class Source {
 public:
  virtual ~Source() = default;
  /// What is not there now is not there.
  virtual Task<void> wait_ready() = 0;
  virtual Pulls& pulls() = 0;
  /// For the node's status: the largest 50, as last seen.
  [[nodiscard]] virtual const json::Array& node_images() const = 0;
};

/// Go's text for a span of time, in whole milliseconds: 312ms, 1.2s, 1m2.5s.
std::string go_duration(Duration span);
/// What of a failed pull is its reason and its message.
std::pair<std::string, std::string> pull_failure(const std::string& image,
                                                 const std::string& error);

}  // namespace muster::agent::image
