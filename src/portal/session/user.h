/// Who is signed in.
#pragma once

#include <string>
#include <vector>

namespace muster::portal {

struct User {
  std::string name;
  std::vector<std::string> groups;  // as Kubernetes knows them
  std::vector<std::string> vcs;     // virtual clusters that may be used, for those who have a list
  bool admin = false;
  bool openpai = false;  // one of OpenPAI's users: sees every OpenPAI job
  std::string uid;       // of the account behind a token; empty: none is known
  /// Says whether the password is still the one that they signed in with; empty: it is not known.
  std::string credential;

  bool operator==(const User&) const = default;
};

}  // namespace muster::portal
