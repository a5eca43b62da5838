/// The entries of metadata.managedFields, each a manager with what it owns, to be read, changed and
/// written back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/apply/apply.h"
#include "kube/apply/fieldset.h"

namespace muster::kube {

struct Manager {
  std::string name, operation, api_version, subresource, time;
  /// Shared with all objects whose manager has the same; replace() gives one of its own.
  std::shared_ptr<const FieldSet> set = std::make_shared<const FieldSet>();
  /// The set packed (managed.h); empty once it was changed, and where `entry` holds it.
  std::string text = {};
  /// As it stands in the object, to be put back as it is; null once something of it was changed.
  json::Value entry = {};

  [[nodiscard]] bool is(const ApplyRequest& request, std::string_view kind) const {
    return name == request.manager && operation == kind && api_version == request.api_version &&
           subresource == request.subresource;
  }
  /// As conflicts name it.
  [[nodiscard]] std::string title() const;
  void replace(FieldSet other);
  void touch(Time now);
  void subtract(const FieldSet& other);
};

std::vector<Manager> read_managers(const json::Value& object);
/// As read_managers(), for one who writes them back: entries that will not change are taken out
/// whole.
std::vector<Manager> take_managers(json::Value& object);
void write_managers(json::Value& object, std::vector<Manager> managers);
/// The one of the request, made when there is none.
Manager& manager_for(std::vector<Manager>& managers,
                     const ApplyRequest& request,
                     std::string_view operation);

}  // namespace muster::kube
