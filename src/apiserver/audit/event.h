/// Lines of the audit log: Events of audit.k8s.io/v1.
///
/// Most of a line is written on the loop, straight from the request it is about: that costs less
/// than a copy of the request would. What has to be read first, errors and bodies, is left out as a
/// gap that a worker fills.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/audit/policy.h"
#include "apiserver/core.h"

namespace muster::apiserver::audit {

/// A body of a request or answer: text of some type, or an object of this process.
struct Content {
  std::string type, text;
  kube::ObjectPtr object;
  [[nodiscard]] bool empty() const { return text.empty() && !object; }
};

/// What a worker writes of a line: the answer and the bodies.
struct Bodies {
  int code = 0;     // of the answer; 0: none yet
  Content failure;  // the answer, if it is an error
  Content request, response;
  bool omit_managed_fields = false;
  /// The kind holds secrets: no text of a body is repeated.
  bool secret = false;
  [[nodiscard]] bool empty() const {
    return failure.empty() && request.empty() && response.empty();
  }
};

/// Beside the decision: few requests have any.
using Annotations = std::vector<std::pair<std::string_view, std::string>>;

/// The rest of it, where it is.
struct Event {
  Level level = Level::kMetadata;
  Stage stage = Stage::kResponseComplete;
  std::string_view id, uri, verb, source, forwarded, agent;
  const User& user;
  const User* acting = nullptr;  // whom the user acts as
  // What it is about; `resource` is empty for other paths.
  std::string_view group, version, resource, subresource, ns, name;
  Time received, at;
  /// How it was decided and why; without a decision both are empty.
  std::string_view decision, reason;
  const Annotations& annotations;
};

/// What lines say of users, and why their requests were allowed. The same few ask again and again,
/// so the last texts are kept.
class Users {
 public:
  const std::string& text_of(const User& user);
  /// Reasons quote names: to escape one costs more than to find it.
  const std::string& text_of_reason(std::string_view reason);

 private:
  template <typename Of>
  struct Known {
    Of of;
    std::string text;  // empty: of nothing yet
  };
  std::array<Known<User>, 64> users_;           // by name
  std::array<Known<std::string>, 64> reasons_;  // by themselves
};

/// Lines on their way to the file.
class Lines {
 public:
  Lines() = default;
  /// With the room of a text that is no longer needed.
  explicit Lines(std::string spare) : text_(std::move(spare)) { text_.clear(); }
  void add(const Event& event, Bodies&& bodies, Users& users);
  [[nodiscard]] std::size_t count() const { return count_; }
  /// What they weigh, about.
  [[nodiscard]] std::size_t bytes() const { return text_.size() + gap_bytes_; }
  /// The whole text, each line with its end. Runs on a worker.
  [[nodiscard]] std::string take();

 private:
  std::string text_;
  std::size_t count_ = 0, gap_bytes_ = 0;
  std::vector<std::pair<std::size_t, Bodies>> gaps_;  // at which place of the text
};

/// Whether bodies of the resource are never written down, whatever the policy says: Secrets, and
/// what tokens are asked for and answered with.
[[nodiscard]] bool holds_secrets(std::string_view group,
                                 std::string_view resource,
                                 std::string_view subresource);

}  // namespace muster::apiserver::audit
