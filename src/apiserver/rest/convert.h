/// Between the stored form of an object and the version a client speaks.
#pragma once

#include "apiserver/registry/image.h"
#include "apiserver/registry/resources.h"
#include "kube/shared.h"

namespace muster::apiserver {

/// A stored object as `resource` serves it.
json::Value to_served(const Resource& resource, const json::Value& stored);
/// What a client sent, in the stored form.
json::Value to_stored(const Resource& resource, json::Value served);
/// A stored object as served; the image's own when the versions agree.
kube::ObjectPtr served_object(const Resource& resource, const StoredPtr& stored);
/// The JSON of a stored object as served; the stored bytes themselves when the versions agree.
Bytes served_bytes(const Resource& resource, const Stored& stored);
/// The object of a list: built-in kinds leave out kind and apiVersion.
void append_list_item(const Resource& resource, const Stored& stored, std::string& out);

/// The JSON of a PartialObjectMetadata.
std::string partial_metadata(const json::Value& object);

}  // namespace muster::apiserver
