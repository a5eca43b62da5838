/// Admission of the job kinds, for an API server to call: the rules that upstream keeps in webhooks
/// and CRDs.
#pragma once

#include "controllers/common/field.h"

namespace muster::controllers {

/// `old_object` null on create. Kinds that are none of ours are accepted. MPIJobs of kubeflow.org
/// are judged by their controllers, as upstream does, so that a bad one is accepted and says so in
/// an event.
Verdict admit(const json::Value& object, const json::Value* old_object);

/// The job with the defaults that its controller works with, so that people can read them off the
/// object. Other kinds, and jobs whose kind leaves its fields as they are, come back unchanged.
json::Value with_defaults(const json::Value& object);

}  // namespace muster::controllers
