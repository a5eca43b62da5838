/// An image's name, as people write it and as registries know it. Pure.
///
///   busybox                      docker.io/library/busybox:latest
///   pytorch/pytorch:2.1          docker.io/pytorch/pytorch:2.1
///   127.0.0.1:5000/a/b@sha256:…  127.0.0.1:5000/a/b@sha256:…
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::agent::image {

struct Reference {
  std::string domain;  // "docker.io"
  std::string path;    // "library/busybox"
  std::string tag;     // empty with a digest and none
  std::string digest;  // "sha256:…"; may be empty

  /// Without tag and digest.
  [[nodiscard]] std::string repository() const { return domain + "/" + path; }
  /// In full. A tag beside a digest says nothing, and is left out.
  [[nodiscard]] std::string name() const;
};

/// The error is what a kubelet says of a name that is none.
Result<Reference> parse_reference(std::string_view text);

}  // namespace muster::agent::image
