/// metadata.managedFields as the server keeps them.
///
/// The sets of fields have as many members as the rest of the object, and nobody but the next write
/// looks at them. So the fieldsV1 of each entry is kept as one string, the set's JSON text
/// ("packed"): it is copied, compared and written as a whole, and read once for all objects that
/// have the same. Clients of the same process see it packed; text for everybody else holds the tree
/// that Kubernetes knows.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "json/json.h"
#include "kube/apply/fieldset.h"

namespace muster::kube {

/// Packs what is not; a string that is no JSON object becomes the empty set, so that text made of
/// it stays JSON.
void pack_managers(json::Value& object);
/// Trees again, as Kubernetes knows them.
void unpack_managers(json::Value& object);

/// The object's JSON, packed sets written as what they are.
std::string object_text(const json::Value& object);
/// The same for its metadata alone.
std::string metadata_text(const json::Value& metadata);

/// The set behind a fieldsV1, packed or not; shared by all that ask for the same text.
std::shared_ptr<const FieldSet> fields_of(const json::Value& fields_v1);

}  // namespace muster::kube
