/// Parts of defaults that several kinds share.
#pragma once

#include "kube/schema/schema.h"

namespace muster::kube {

/// Quantities and times in canonical form, nulls dropped, as a decode and encode in Go does.
void canonicalise(const Type& type, json::Value& object);
/// Only the quantities and times: in an applied configuration an empty list says that the list
/// shall be empty.
void canonicalise_values(const Type& type, json::Value& object);
/// A PodSpec wherever it stands. `pod` is true in a Pod itself: there requests follow limits and
/// service links are on.
void default_pod_spec(json::Value& spec, bool pod);
/// The pod of `spec.template`.
void default_template(json::Object& spec);
/// A PersistentVolumeClaim, which a StatefulSet has templates of.
void default_claim(json::Object& claim);

}  // namespace muster::kube
