/// Reading and making the JSON of pods and their owners.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controllers/common/plan.h"
#include "kube/meta.h"

namespace muster::controllers {

using Objects = std::vector<const json::Value*>;

/// As kube::name_of and its kin, in texts of their own: plans outlive the objects that they are made
/// of.
std::string name_of(const json::Value& object);
std::string namespace_of(const json::Value& object);
std::string uid_of(const json::Value& object);
std::string phase_of(const json::Value& pod);
using kube::is_deleting;
bool is_controlled_by(const json::Value& object, const json::Value& owner);
/// Not finished and not being deleted.
bool is_active(const json::Value& pod);
bool is_ready(const json::Value& pod);
std::string label_of(const json::Value& object, std::string_view key);
std::string annotation_of(const json::Value& object, std::string_view key);
/// The number in the label, or -1.
int index_label(const json::Value& object, std::string_view key);

/// A controller ownerReference to `owner`, with the apiVersion given (the job's own when empty).
json::Value owner_reference(const json::Value& owner, std::string_view api_version = "");
/// {apiVersion, kind, metadata: {name, namespace, labels, ownerReferences}}
json::Value make_child(const json::Value& owner,
                       std::string_view api_version,
                       std::string_view kind,
                       std::string_view name);

/// The object's member as an array or object, made when absent.
json::Array& array_at(json::Value& value, std::initializer_list<std::string_view> path);
json::Array& array_of(json::Value& object, std::string_view key);
json::Value env(std::string_view name, std::string_view value);
void set_label(json::Value& object, std::string_view key, std::string_view value);
void set_annotation(json::Value& object, std::string_view key, std::string_view value);
bool has_env(const json::Value& container, std::string_view name);
/// Position of the container, or -1.
int find_container(const json::Value& pod_spec, std::string_view name);

/// True when every member of `wanted` is in `found` with the same value (objects in depth, the rest
/// exactly).
bool contains(const json::Value& found, const json::Value& wanted);
/// A merge patch that turns the map `from` into `to`: new values, and null for what is gone.
json::Value map_patch(const json::Value& from, const json::Value& to);

Action create(std::string_view kind, json::Value object);
Action patch(std::string_view kind, std::string_view name, json::Value merge_patch);
Action remove(std::string_view kind, const json::Value& object);

/// status.x as a time; zero when absent.
Time time_at(const json::Value& value);
json::Value time_value(Time time);

/// Why an object of a wanted name that is not ours stops the job: the event and the error.
void refuse_foreign(Plan& plan,
                    std::string_view name,
                    std::string_view kind,
                    std::string_view owner_kind);

}  // namespace muster::controllers
