#include "apiserver/rest/discovery.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "apiserver/audit/log.h"
#include "apiserver/rest/shares.h"
#include "base/prometheus.h"
#include "base/strings.h"
#include "kube/names.h"
#include "kube/resources.h"
#include "kube/schema/openapi.h"
#include "net/tls/tls.h"

namespace muster::apiserver {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02X}", static_cast<unsigned char>(c));
  return text;
}

json::Array strings(const std::vector<std::string>& list) {
  json::Array result;
  for (const std::string& each : list) result.push_back(json::Value(each));
  return result;
}

json::Value response_kind(std::string_view group, std::string_view version, std::string_view kind) {
  return json::Value{{"group", group}, {"version", version}, {"kind", kind}};
}

/// Subresources as discovery lists them; those of a CRD come from its declaration.
std::vector<kube::Subresource> subresources_of(const Resource& resource) {
  std::vector<kube::Subresource> list = resource.info.subresources;
  if (!resource.custom()) return list;
  const auto listed = [&](std::string_view name) {
    return std::any_of(
        list.begin(), list.end(), [&](const kube::Subresource& each) { return each.name == name; });
  };
  if (resource.version->status_subresource && !listed("status"))
    list.push_back({"status", "", "", resource.info.kind, {"get", "patch", "update"}});
  if (resource.version->scale && !listed("scale"))
    list.push_back({"scale", "autoscaling", "v1", "Scale", {"get", "patch", "update"}});
  return list;
}

json::Value aggregated_resource(const Resource& resource) {
  json::Object entry;
  entry["resource"] = resource.info.plural;
  entry["responseKind"] = response_kind(resource.custom() ? resource.info.group : "",
                                        resource.custom() ? resource.info.version : "",
                                        resource.info.kind);
  entry["scope"] = resource.info.namespaced ? "Namespaced" : "Cluster";
  entry["singularResource"] = resource.info.singular;
  entry["verbs"] = strings(resource.info.verbs);
  if (!resource.info.short_names.empty()) entry["shortNames"] = strings(resource.info.short_names);
  if (!resource.info.categories.empty()) entry["categories"] = strings(resource.info.categories);
  json::Array subresources;
  for (const kube::Subresource& each : subresources_of(resource)) {
    json::Object sub;
    sub["subresource"] = each.name;
    sub["responseKind"] = response_kind(each.group, each.version, each.kind);
    sub["verbs"] = strings(each.verbs);
    subresources.push_back(std::move(sub));
  }
  if (!subresources.empty()) entry["subresources"] = std::move(subresources);
  return json::Value(std::move(entry));
}

json::Value legacy_resource(const Resource& resource) {
  json::Object entry;
  entry["name"] = resource.info.plural;
  entry["singularName"] = resource.info.singular;
  entry["namespaced"] = resource.info.namespaced;
  entry["kind"] = resource.info.kind;
  entry["verbs"] = resource.custom() ? json::Array{"delete",
                                                   "deletecollection",
                                                   "get",
                                                   "list",
                                                   "patch",
                                                   "create",
                                                   "update",
                                                   "watch"}
                                     : strings(resource.info.verbs);
  if (!resource.info.short_names.empty()) entry["shortNames"] = strings(resource.info.short_names);
  if (!resource.info.categories.empty()) entry["categories"] = strings(resource.info.categories);
  if (resource.stored)
    entry["storageVersionHash"] = base64_encode(
        net::sha256(resource.storage_api_version + "/" + resource.info.kind).substr(0, 8));
  return json::Value(std::move(entry));
}

json::Value group_entry(const std::vector<GroupVersion>& all, const std::string& name) {
  json::Array versions;
  for (const GroupVersion& each : all) {
    if (each.group == name)
      versions.push_back(
          json::Value{{"groupVersion", name + "/" + each.version}, {"version", each.version}});
  }
  json::Object entry;
  entry["name"] = name;
  entry["versions"] = versions;
  entry["preferredVersion"] = versions.front();
  return json::Value(std::move(entry));
}

bool not_modified(const net::Request& request, const std::string& etag) {
  const std::string_view given = request.headers.get("If-None-Match");
  return !given.empty() && given.find(etag) != std::string_view::npos;
}

net::Response empty_response(int status) {
  net::Response response;
  response.status = status;
  return response;
}

}  // namespace

void Discovery::refresh() {
  if (generation_ == core_.resources.generation()) return;
  documents_.clear();
  generation_ = core_.resources.generation();
}

const Discovery::Document& Discovery::aggregated(bool core_group) {
  Document& document = documents_[core_group ? "/api" : "/apis"];
  if (!document.body.empty()) return document;
  json::Array items;
  std::string last = "?";
  for (const GroupVersion& each : core_.resources.group_versions()) {
    if (each.group.empty() != core_group) continue;
    if (each.group != last) {
      json::Object metadata;
      if (!each.group.empty()) metadata["name"] = each.group;
      items.push_back(json::Value{{"metadata", std::move(metadata)}, {"versions", json::Array()}});
      last = each.group;
    }
    json::Array resources;
    for (const ResourcePtr& resource : each.resources)
      resources.push_back(aggregated_resource(*resource));
    json::Value version = {
        {"version", each.version}, {"resources", std::move(resources)}, {"freshness", "Current"}};
    items.back().get_object()["versions"].get_array().push_back(std::move(version));
  }
  const json::Value list = {{"kind", "APIGroupDiscoveryList"},
                            {"apiVersion", "apidiscovery.k8s.io/v2"},
                            {"metadata", json::Object()},
                            {"items", std::move(items)}};
  document.body = json::dump(list) + "\n";
  document.etag = "\"" + hex(net::sha256(document.body)) + "\"";
  return document;
}

net::Response Discovery::groups(const net::Request& request, bool core_group) {
  const auto accepted = negotiate(request, true);
  if (!accepted) return error_response(accepted.error());
  if (accepted->form == Form::kDiscovery) {
    const Document& document = aggregated(core_group);
    net::Response response = empty_response(200);
    if (not_modified(request, document.etag)) {
      response.status = 304;
    } else {
      response.headers.set("Content-Type",
                           "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
      response.body = document.body;
    }
    response.headers.set("ETag", document.etag);
    response.headers.set("Vary", "Accept");
    response.headers.set("Cache-Control", "public");
    return response;
  }
  if (core_group) {
    const std::string address = fmt::format("{}:{}", core_.options.address, core_.options.port);
    const json::Value versions = {
        {"kind", "APIVersions"},
        {"versions", json::Array{"v1"}},
        {"serverAddressByClientCIDRs",
         json::Array{json::Value{{"clientCIDR", "0.0.0.0/0"}, {"serverAddress", address}}}}};
    return encode(*accepted, 200, versions);
  }
  json::Array list;
  std::set<std::string> seen;
  for (const GroupVersion& each : core_.resources.group_versions()) {
    if (!each.group.empty() && seen.insert(each.group).second)
      list.push_back(group_entry(core_.resources.group_versions(), each.group));
  }
  return encode(
      *accepted,
      200,
      json::Value{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(list)}});
}

net::Response Discovery::group(const std::string& name) const {
  json::Object entry = {{"kind", "APIGroup"}, {"apiVersion", "v1"}};
  const json::Value group = group_entry(core_.resources.group_versions(), name);
  for (const auto& member : group.get_object()) entry[member.key()] = member.value();
  return json_response(200, json::Value(std::move(entry)));
}

net::Response Discovery::resources(const GroupVersion& group_version) const {
  json::Array list;
  for (const ResourcePtr& resource : group_version.resources) {
    list.push_back(legacy_resource(*resource));
    for (const kube::Subresource& each : subresources_of(*resource)) {
      json::Object entry;
      entry["name"] = resource->info.plural + "/" + each.name;
      entry["singularName"] = "";
      entry["namespaced"] = resource->info.namespaced;
      if (!each.group.empty()) entry["group"] = each.group;
      if (!each.group.empty() && !each.version.empty()) entry["version"] = each.version;
      entry["kind"] = each.kind;
      entry["verbs"] = strings(each.verbs);
      list.push_back(std::move(entry));
    }
  }
  json::Object result = {{"kind", "APIResourceList"}};
  if (!group_version.group.empty()) result["apiVersion"] = "v1";
  result["groupVersion"] = group_version.group.empty()
                               ? group_version.version
                               : group_version.group + "/" + group_version.version;
  result["resources"] = std::move(list);
  return json_response(200, json::Value(std::move(result)));
}

std::string Discovery::hash_of(const GroupVersion& group_version) const {
  std::string text =
      fmt::format("{} {}/{}", kube::kKubernetesVersion, group_version.group, group_version.version);
  for (const ResourcePtr& resource : group_version.resources) {
    if (!resource->custom()) continue;
    const StoredPtr crd = core_.image.collection(kube::collections::kCustomResourceDefinitions)
                              .find(resource->crd_name);
    if (crd)
      text += fmt::format(" {} {}",
                          resource->crd_name,
                          json::dump(json::at(crd->object, "metadata", "generation")) +
                              json::text_at(crd->object, "metadata", "uid"));
  }
  return hex(net::sha256(text));
}

net::Response Discovery::openapi_index(const net::Request& request) {
  Document& document = documents_["/openapi/v3"];
  if (document.body.empty()) {
    json::Object paths;
    for (const GroupVersion& each : core_.resources.group_versions()) {
      const std::string path =
          each.group.empty() ? "api/" + each.version : "apis/" + each.group + "/" + each.version;
      paths[path] = json::Value{
          {"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={}", path, hash_of(each))}};
    }
    document.body = json::dump(json::Value{{"paths", std::move(paths)}}) + "\n";
    document.etag = "\"" + hex(net::sha256(document.body)) + "\"";
  }
  net::Response response = empty_response(200);
  response.headers.set("ETag", document.etag);
  if (not_modified(request, document.etag)) {
    response.status = 304;
    return response;
  }
  response.headers.set("Content-Type", "application/json");
  response.body = document.body;
  return response;
}

/// Made for each that asks: half a megabyte that only old clients want, once in a while.
net::Response Discovery::openapi_v2(const net::Request& request) {
  std::string versions;
  std::vector<kube::Crd> crds;
  std::set<std::string> groups;
  for (const GroupVersion& each : core_.resources.group_versions()) {
    versions += hash_of(each);
    if (!groups.insert(each.group).second) continue;
    for (kube::Crd& crd : core_.resources.crds_of(each.group)) crds.push_back(std::move(crd));
  }
  const std::string etag = "\"" + hex(net::sha256(versions)) + "\"";
  net::Response response = empty_response(200);
  response.headers.set("ETag", etag);
  if (not_modified(request, etag)) {
    response.status = 304;
    return response;
  }
  // Not as it was asked for: "@" is no character of a media type, and old clients stumble over it.
  response.headers.set("Content-Type",
                       "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  response.body = kube::openapi_v2(kube::Schema::builtin(), crds);
  return response;
}

std::optional<net::Response> Discovery::openapi_document(const net::Request& request,
                                                         const net::Target& target) {
  const auto& parts = target.segments;  // openapi v3 api v1 | openapi v3 apis G V
  const bool core_group = parts.size() == 4 && parts[2] == "api";
  const bool named = parts.size() == 5 && parts[2] == "apis";
  if (!core_group && !named) return std::nullopt;
  const std::string group = core_group ? "" : parts[3];
  const std::string version = core_group ? parts[3] : parts[4];
  const GroupVersion* group_version = core_.resources.find_group_version(group, version);
  if (group_version == nullptr) return std::nullopt;
  const std::string etag = "\"" + hash_of(*group_version) + "\"";
  net::Response response = empty_response(200);
  response.headers.set("ETag", etag);
  if (target.has("hash")) response.headers.set("Cache-Control", "public, immutable");
  if (not_modified(request, etag)) {
    response.status = 304;
    return response;
  }
  response.headers.set("Content-Type", "application/json");
  response.body = json::dump(
      kube::openapi_v3(kube::Schema::builtin(), group, version, core_.resources.crds_of(group)));
  return response;
}

net::Response Discovery::metrics() const {
  prometheus::Page page;
  const auto number = [](auto count) { return static_cast<double>(count); };
  page.begin("apiserver_request_total", "counter", "Requests by verb and code.");
  for (const auto& [key, count] : core_.request_counts) {
    const auto space = key.find(' ');
    page.value("apiserver_request_total",
               number(count),
               {{"verb", key.substr(0, space)}, {"code", key.substr(space + 1)}});
  }
  page.one("apiserver_watches", "gauge", "Watches open now.", number(core_.watches));
  page.one("apiserver_requests_waiting",
           "gauge",
           "Requests that wait for their turn while several users send some.",
           number(core_.shares->waiting()));
  page.begin("apiserver_storage_objects", "gauge", "Objects stored, by resource.");
  for (const auto& [storage, collection] : core_.image.collections())
    page.value(
        "apiserver_storage_objects", number(collection->objects().size()), {{"resource", storage}});
  page.one("apiserver_revision",
           "counter",
           "The newest resourceVersion.",
           number(core_.image.revision()));
  if (core_.audit) {
    page.one("apiserver_audit_event_total",
             "counter",
             "Lines written to the audit log.",
             number(core_.audit->written()));
    page.one("apiserver_audit_error_total",
             "counter",
             "Lines of the audit log that could not be written.",
             number(core_.audit->lost()));
  }
  if (core_.options.add_metrics) core_.options.add_metrics(page);
  prometheus::add_process(page);
  return text_response(200, page.take());
}

/// A table of paths: what each answers.
std::optional<net::Response> Discovery::answer(const net::Request& request,
                                               const net::Target& target) {
  const auto& parts = target.segments;
  // Nearly every request is about a resource: say so before comparing with the few other paths.
  if ((parts.size() > 2 && parts[0] == "api") || (parts.size() > 3 && parts[0] == "apis"))
    return std::nullopt;
  refresh();
  const auto is = [&](std::string_view path) {
    return target.path == path || target.path == std::string(path) + "/";
  };
  if (is("/healthz") || is("/livez") || is("/readyz")) {
    if (is("/readyz") && (!core_.ready || core_.gate.closed()))
      return text_response(500, "[-]started failed: not ready\n");
    if (const std::string trouble = core_.store.trouble(); is("/readyz") && !trouble.empty())
      return text_response(500, fmt::format("[-]store failed: {}\n", trouble));
    if (!target.has("verbose")) return text_response(200, "ok");
    const std::string name = parts.front();
    return text_response(
        200,
        fmt::format(
            "[+]ping ok\n[+]log ok\n[+]store ok\n[+]image ok\n[+]namespaces ok\n{} check passed\n",
            name));
  }
  if (is("/version")) {
    net::Response response = json_response(200, json::Object());
    response.body = json::dump_pretty(json::Value{{"major", "1"},
                                                  {"minor", "37"},
                                                  {"emulationMajor", "1"},
                                                  {"emulationMinor", "37"},
                                                  {"minCompatibilityMajor", "1"},
                                                  {"minCompatibilityMinor", "36"},
                                                  {"gitVersion", kube::kKubernetesVersion},
                                                  {"gitCommit", "muster"},
                                                  {"gitTreeState", "clean"},
                                                  {"buildDate", "2026-08-26T00:00:00Z"},
                                                  {"goVersion", "none"},
                                                  {"compiler", "clang"},
                                                  {"platform", "linux/amd64"}});
    return response;
  }
  if (is("/metrics")) return metrics();
  if (is("/api")) return groups(request, true);
  if (is("/apis")) return groups(request, false);
  if (is("/openapi/v3")) return openapi_index(request);
  if (is("/openapi/v2")) return openapi_v2(request);
  if (parts.size() >= 2 && parts[0] == "openapi" && parts[1] == "v3") {
    auto found = openapi_document(request, target);
    return found ? std::move(*found) : text_response(404, "404 page not found\n");
  }
  if (parts.size() == 2 && parts[0] == "api") {
    const GroupVersion* found = core_.resources.find_group_version("", parts[1]);
    return found != nullptr ? resources(*found) : error_response(no_such_path());
  }
  if (parts.size() == 2 && parts[0] == "apis") {
    return core_.resources.has_group(parts[1]) ? group(parts[1])
                                               : text_response(404, "404 page not found\n");
  }
  if (parts.size() == 3 && parts[0] == "apis") {
    const GroupVersion* found = core_.resources.find_group_version(parts[1], parts[2]);
    if (found != nullptr) return resources(*found);
    return core_.resources.has_group(parts[1]) ? error_response(no_such_path())
                                               : text_response(404, "404 page not found\n");
  }
  if (parts.empty()) {
    json::Array paths = {"/api", "/api/v1", "/apis"};
    std::string last;
    for (const GroupVersion& each : core_.resources.group_versions()) {
      if (each.group.empty()) continue;
      if (each.group != last) paths.push_back(json::Value("/apis/" + each.group));
      last = each.group;
      paths.push_back(json::Value("/apis/" + each.group + "/" + each.version));
    }
    for (const std::string_view path :
         {"/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"})
      paths.push_back(json::Value(path));
    return json_response(200, json::Value{{"paths", std::move(paths)}});
  }
  if (parts[0] != "api" && parts[0] != "apis") return text_response(404, "404 page not found\n");
  return std::nullopt;
}

}  // namespace muster::apiserver
