/// Which of the three MPIJob controllers owns a job.
///
/// kubeflow.org/v1alpha1, v1 and v2beta1 share one CRD without conversion: every stored job can be
/// read in every version, and only one controller may act on it. The version a job was created with
/// decides:
///   1. annotation muster.dev/mpi-version, if somebody set it;
///   2. metadata.managedFields: the apiVersion of the oldest entry that is not about a subresource;
///   3. the shape of the spec: no mpiReplicaSpecs is v1alpha1; fields only v2beta1 has are
///   v2beta1's (its CRD defaults
///      put them into every v2beta1 job); mainContainer or a top-level cleanPodPolicy is v1;
///   4. else the apiVersion the job is read in.
#pragma once

#include <string>

#include "json/json.h"

namespace muster::controllers::mpijob {

/// "v1alpha1", "v1" or "v2beta1".
std::string version_of(const json::Value& job);
/// The job as its own controller sees it: apiVersion set to the version it was created with.
json::Value in_own_version(const json::Value& job);

}  // namespace muster::controllers::mpijob
