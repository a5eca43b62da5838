/// What became of a job's earlier attempts. A Framework tells of its present attempt alone, so the
/// last state of each that ended is kept beside it, in a ConfigMap that goes when the job goes: the
/// newest 20, each without its pod templates. On the loop.
#pragma once

#include <map>
#include <string>

#include "base/gate.h"
#include "client/client.h"
#include "client/informer.h"
#include "json/json.h"
#include "pai/index/job_index.h"

namespace muster::pai::rest {

class Attempts {
 public:
  Attempts(Env& env, client::Client& client) : env_(env), client_(client), gate_(env) {}
  void follow(JobIndex& index);
  Task<void> stop();

  /// By number, the present one not among them; each is a Framework as it was.
  Task<Result<std::map<std::int64_t, json::Value>>> of(const ListedJob& job);

 private:
  void changed(const client::ObjectPtr& old_job, const client::ObjectPtr& new_job);
  Task<void> keep(client::ObjectPtr framework);

  Env& env_;
  client::Client& client_;
  Gate gate_;
};

}  // namespace muster::pai::rest
