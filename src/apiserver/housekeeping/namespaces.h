/// Namespaces: the check that new objects have a living one, what each gets (its default
/// ServiceAccount and the CA bundle), and their deletion with everything in them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "apiserver/core.h"

namespace muster::apiserver {

class Namespaces {
 public:
  explicit Namespaces(Core& core) : core_(core) {}

  /// Held while an object is being created in a namespace, so that the namespace does not vanish
  /// under it.
  class Entry {
   public:
    Entry() = default;
    Entry(Namespaces* owner, std::string ns) : owner_(owner), ns_(std::move(ns)) {
      ++owner_->creating_[ns_];
    }
    Entry(Entry&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), ns_(std::move(other.ns_)) {}
    Entry& operator=(Entry&&) = delete;
    ~Entry() {
      if (owner_ != nullptr && --owner_->creating_[ns_] == 0) owner_->creating_.erase(ns_);
    }

   private:
    Namespaces* owner_ = nullptr;
    std::string ns_;
  };

  /// NotFound when the namespace is absent, Forbidden while it is being deleted.
  Result<Entry> enter(const Resource& resource, const std::string& ns, std::string_view name);

  /// The ServiceAccount "default" of the namespace exists when this returns.
  Task<void> ensure_contents(std::string ns);

  void observe(Collection& collection, const Change& change);
  /// Takes up what a stopped server left half done.
  Task<void> resume();

 private:
  Task<void> provision(std::string ns);
  Task<void> terminate(std::string ns);
  Task<std::size_t> delete_contents(const std::string& ns);
  struct Remains {
    std::string content, finalizers;
  };
  Remains remains_of(const std::string& ns);
  Task<void> report(const std::string& ns, std::size_t remaining);

  Core& core_;
  std::map<std::string, std::size_t> creating_;
  std::set<std::string> terminating_;
  /// terminate() of a namespace waits for its contents to go.
  std::map<std::string, Signal*> waiting_;
};

}  // namespace muster::apiserver
