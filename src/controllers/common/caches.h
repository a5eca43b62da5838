/// The objects that controllers look at, one cache a kind for all of them, with an index by owner;
/// and who is woken when one changes. Lives on the loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/informer.h"
#include "controllers/common/plan.h"

namespace muster::controllers {

/// The resource behind a kind name of plan.h.
const client::Resource& resource_of(std::string_view kind);

class Caches {
 public:
  using Wake = std::function<void(const std::string& key)>;
  using OnChange =
      std::function<void(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object)>;

  explicit Caches(client::Informers& informers);
  Caches(const Caches&) = delete;

  /// Starts to follow the kind, once however often it is asked for.
  void follow(std::string_view kind);
  /// `wake` is told "namespace/name" of an owner of this group and kind when something it controls
  /// changes, directly or through a Job, StatefulSet or ConfigMap in between.
  void wake_owner(const std::string& group, const std::string& kind, Wake wake);
  void on_change(std::string_view kind, OnChange callback);

  [[nodiscard]] client::ObjectPtr find(std::string_view kind, const std::string& key) const;
  [[nodiscard]] std::vector<const json::Value*> controlled_by(std::string_view kind,
                                                              std::string_view uid) const;
  [[nodiscard]] std::vector<const json::Value*> in_namespace(std::string_view kind,
                                                             const std::string& ns) const;
  [[nodiscard]] std::optional<std::int64_t> priority_of(std::string_view priority_class) const;

 private:
  friend class Snapshot;
  struct Cache {
    client::Informer* informer = nullptr;
    /// Owner uid -> name -> object.
    std::unordered_map<std::string, std::map<std::string, client::ObjectPtr>> by_owner;
    std::vector<OnChange> callbacks;
  };
  void changed(Cache& cache,
               const client::ObjectPtr& old_object,
               const client::ObjectPtr& new_object);
  void wake_owner_of(const json::Value& object, int levels) const;
  [[nodiscard]] const Cache* cache(std::string_view kind) const;

  client::Informers& informers_;
  std::map<std::string, Cache, std::less<>> by_kind_;
  std::map<std::string, std::vector<Wake>> owners_;  // "group/Kind"
  client::Informer& priority_classes_;
};

/// The namespace of one job.
class CacheView final : public View {
 public:
  CacheView(const Caches& caches, std::string ns, std::string last_error)
      : caches_(caches), ns_(std::move(ns)), last_error_(std::move(last_error)) {}
  [[nodiscard]] std::vector<const json::Value*> controlled_by(std::string_view kind,
                                                              std::string_view uid) const override {
    return caches_.controlled_by(kind, uid);
  }
  [[nodiscard]] std::vector<const json::Value*> all(std::string_view kind) const override {
    return caches_.in_namespace(kind, ns_);
  }
  [[nodiscard]] const json::Value* find(std::string_view kind,
                                        std::string_view name) const override {
    return caches_.find(kind, ns_ + "/" + std::string(name)).get();
  }
  [[nodiscard]] std::optional<std::int64_t> priority_of(std::string_view name) const override {
    return caches_.priority_of(name);
  }
  [[nodiscard]] std::string last_error() const override { return last_error_; }

 private:
  const Caches& caches_;
  std::string ns_;
  std::string last_error_;
};

/// What the plan of one job looks at, as it is now, for a worker: a job of thousands of pods is planned
/// beside the loop. It costs what the job controls, not what its namespace holds: it begins with the
/// objects that the job controls, directly or through one in between. What a plan asks for beyond them
/// it is told is not there, and the question is noted: fetch() on the loop, and plan once more.
class Snapshot final : public View {
 public:
  /// A question about one kind: an object by its name, those of an owner by its uid, or all.
  struct Question {
    enum class What { kFind, kControlled, kAll };
    What what = What::kFind;
    std::string kind, word;
    auto operator<=>(const Question&) const = default;
  };
  using Questions = std::set<Question>;

  /// `asked`: what a plan of this job is known to ask for.
  Snapshot(const Caches& caches, const json::Value& job, std::string last_error, Questions asked);

  /// Nothing was asked for that it did not have.
  [[nodiscard]] bool complete() const { return missed_.empty(); }
  /// On the loop: everything anew, and with it what was asked for.
  void fetch();
  /// What was asked for beyond what the job controls.
  [[nodiscard]] const Questions& asked() const { return asked_; }

  [[nodiscard]] std::vector<const json::Value*> controlled_by(std::string_view kind,
                                                              std::string_view uid) const override;
  [[nodiscard]] std::vector<const json::Value*> all(std::string_view kind) const override;
  [[nodiscard]] const json::Value* find(std::string_view kind,
                                        std::string_view name) const override;
  [[nodiscard]] std::optional<std::int64_t> priority_of(std::string_view name) const override;
  [[nodiscard]] std::string last_error() const override { return last_error_; }

 private:
  using Objects = std::vector<client::ObjectPtr>;  // by name
  void take_controlled(const std::string& uid);
  const Objects* answer(Question question) const;

  const Caches& caches_;  // looked into on the loop alone
  std::string ns_, uid_;
  std::string last_error_;
  Questions asked_;
  mutable Questions missed_;
  std::map<Question, Objects> answers_;
  /// Those of them that are not empty and say more than one object, for find().
  std::map<std::string, std::vector<const Objects*>, std::less<>> lists_;
  Objects priority_classes_;
};

}  // namespace muster::controllers
