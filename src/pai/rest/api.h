/// How REST's routes are written: a table of method, path and who may, each with a function from a
/// call to an answer. The files of this folder are groups of routes; rest.cc serves them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/task.h"
#include "json/json.h"
#include "net/http/http.h"
#include "pai/people/people.h"
#include "pai/refusal.h"

namespace muster::pai::rest {

/// One call on its way.
struct Call {
  net::Request request;
  net::Target target;
  std::vector<std::string> values;  // what stands where the path has ":name", in order
  Caller caller;                    // empty where everybody may ask
  json::Value body;                 // of JSON and forms; null if there is none
};

struct Reply {
  int status = 200;
  json::Value body;
  /// Instead of `body`: text as it is.
  std::string text;
  std::string type;
};

enum class Who {
  kAll,
  kUser,      // logged in, no program
  kPrograms,  // logged in, programs too
  kAdmin,
};

using Run = std::function<Task<Answer<Reply>>(Call&)>;

struct Route {
  std::string method;
  std::string path;  // "users/:user/group"
  Who who;
  Run run;
};

/// {"message": …}, OpenPAI's answer to a change.
Reply said(int status, std::string message);
Reply answered(json::Value body);

/// 400 InvalidParametersError.
Refusal bad_parameters(std::string message);
Refusal not_admin();

}  // namespace muster::pai::rest
