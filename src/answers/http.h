/// The paths of answers.muster.dev/v1: which resource a request asks for, and its answer.
#pragma once

#include <string>

#include "answers/service.h"
#include "net/http/http.h"

namespace muster::answers {

/// What a path asks to do to what, for whoever decides about rights.
struct Asked {
  std::string verb, resource, ns;  // ns empty: the whole cluster
  /// Everybody who is known may ask, and sees what they may.
  bool anybody = false;
};
/// Fails on a path that there is not, or a method that it does not have.
Result<Asked> what_is_asked(const std::string& method, const net::Target& target);

struct Question {
  Visitor visitor;
  std::string method;
  net::Target target;
  std::string body;
};
/// An error as the API server would say it.
net::Response error_answer(const Error& error);
/// The visitor's right to what is asked has been looked at.
Task<net::Response> answer(Service& service, Question question);

}  // namespace muster::answers
