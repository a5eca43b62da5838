/// Lines of the audit log: Events of audit.k8s.io/v1.
///
/// Most of a line is written on the loop, straight from the request it is about: that costs less
/// than a copy of the request would. What has to be read first, errors and bodies, is left out as a
/// gap that a worker fills.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/audit/block.h"
#include "apiserver/audit/policy.h"
#include "apiserver/core.h"

namespace muster::apiserver::audit {

/// A body of a request or answer: text of some type, or an object of this process.
struct Content {
  std::string type, text;
  kube::ObjectPtr object;
  [[nodiscard]] bool empty() const { return text.empty() && !object; }
};

/// What a worker writes of a line: an answer that has to be read first, and the bodies.
struct Bodies {
  Content failure;  // the answer, if it is an error
  Content request, response;
  bool omit_managed_fields = false;
  /// The kind holds secrets: no text of a body is repeated.
  bool secret = false;
  int code = 0;  // that of the line
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
  int code = 0;  // of the answer; 0: none yet
  Time received, at;
  /// How it was decided and why; without a decision both are empty.
  std::string_view decision;
  const Reason* reason = nullptr;
  const Annotations& annotations;
};

/// What lines say of who asks from where, and why that was allowed: the same few ask for the same
/// again and again, so the last texts are kept.
class Phrases {
 public:
  /// The members `user` to `userAgent`, each with the comma before it. Valid until the next call.
  const std::string& who(const Event& event);
  /// The member `annotations` of a request that was allowed, with the comma before it.
  const std::string& why(const Reason& reason);

 private:
  struct Who {
    User user;
    std::string host, forwarded, agent;
    std::string text;  // empty: of nobody yet
  };
  struct Why {
    Reason reason;     // held, so that nothing else can get its address
    std::string text;  // empty: of nothing yet
  };
  std::array<Who, 64> who_;
  std::array<Why, 64> why_;
  Who other_;              // of those who act as somebody else
  Who* latest_ = &other_;  // mostly of the next line, too
};

/// Lines on their way to the file.
class Lines {
 public:
  Lines() = default;
  /// With the room of a block that is no longer needed.
  explicit Lines(Block spare) : text_(std::move(spare)) { text_.clear(); }
  /// `bodies` may be null.
  void add(const Event& event, std::unique_ptr<Bodies> bodies, Phrases& phrases);
  [[nodiscard]] std::size_t count() const { return count_; }
  /// What they weigh, about.
  [[nodiscard]] std::size_t bytes() const { return text_.size() + gap_bytes_; }
  /// The whole text, each line with its end. Runs on a worker.
  [[nodiscard]] Block take();

 private:
  Block text_;
  std::size_t count_ = 0, gap_bytes_ = 0;
  std::vector<std::pair<std::size_t, std::unique_ptr<Bodies>>> gaps_;  // at which place of the text
};

/// Whether bodies of the resource are never written down, whatever the policy says: Secrets, and
/// what tokens are asked for and answered with.
[[nodiscard]] bool holds_secrets(std::string_view group,
                                 std::string_view resource,
                                 std::string_view subresource);

}  // namespace muster::apiserver::audit
