/// The portal's door to OpenPAI's people and REST API. They start with the portal's first visitor
/// unless they run already: a cluster that nobody visits pays nothing for them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "net/loop/loop.h"
#include "pai/service.h"
#include "portal/portal.h"

namespace muster {

class PortalPeople {
 public:
  /// `start` gives the service, started; asked once, unless it failed.
  using Start = std::function<Task<Result<pai::Service*>>()>;
  PortalPeople(net::Loop& loop, Start start) : loop_(loop), start_(std::move(start)) {}

  /// Sets the portal's functions for signing in and for REST.
  void fill(portal::Options& options);
  /// The password that administrators have on the first day and are asked to change.
  void warn_of(std::string password) { known_password_ = std::move(password); }
  /// Sessions end when a password changes or somebody is removed.
  void tell(portal::Portal& portal) { portal_ = &portal; }

 private:
  Task<Result<pai::Service*>> service();
  Task<Result<portal::User>> sign_in(std::string user, std::string password, std::string from);
  Task<Result<portal::User>> look_up(std::string user);
  Task<void> rest(net::Request request, net::ResponseWriter& writer);
  Task<void> rest_as(portal::User user, net::Request request, net::ResponseWriter& writer);
  Task<Result<net::Response>> rest_call(portal::User user,
                                        std::string method,
                                        std::string target,
                                        std::string body,
                                        std::string content_type);
  /// Of this user's, for calls in their name; it never leaves the process.
  Task<Result<std::string>> token_of(std::string user);
  void changed(const std::string& user);
  Task<bool> has_known_password(std::string user);

  net::Loop& loop_;
  Start start_;
  portal::Portal* portal_ = nullptr;
  pai::Service* service_ = nullptr;
  std::unique_ptr<Signal> started_;
  bool starting_ = false;
  std::string known_password_;
  std::map<std::string, bool> known_;  // by what is stored of a password: whether it is that one
  std::map<std::string, std::string> tokens_, passwords_;  // by user
};

}  // namespace muster
