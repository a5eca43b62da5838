#include "kube/embedded.h"

// MUSTER_KUBE_DIR is this folder's absolute path; the build re-compiles this file when the data
// changes.
#define MUSTER_EMBED(name, file)                               \
  asm(".pushsection .rodata." #name                            \
      ",\"a\",@progbits\n"                                     \
      ".balign 16\n"                                           \
      ".globl muster_embed_" #name "\nmuster_embed_" #name     \
      ":\n"                                                    \
      ".incbin \"" MUSTER_KUBE_DIR "/" file                    \
      "\"\n"                                                   \
      ".globl muster_embed_" #name "_end\nmuster_embed_" #name \
      "_end:\n"                                                \
      ".byte 0\n.popsection\n");                               \
  extern "C" const char muster_embed_##name[];                 \
  extern "C" const char muster_embed_##name##_end[];

#define MUSTER_EMBEDDED(name)           \
  std::string_view(muster_embed_##name, \
                   static_cast<std::size_t>(muster_embed_##name##_end - muster_embed_##name))

MUSTER_EMBED(types, "data/types.json")
MUSTER_EMBED(resources, "data/resources.json")
MUSTER_EMBED(descriptions, "data/descriptions.txt")
MUSTER_EMBED(roles_users, "roles/users.yaml")
MUSTER_EMBED(crd_kubeflow, "crds/kubeflow.yaml")
MUSTER_EMBED(crd_mpijob, "crds/mpijob.yaml")
MUSTER_EMBED(crd_volcano, "crds/volcano.yaml")
MUSTER_EMBED(crd_t9k, "crds/t9k.yaml")
MUSTER_EMBED(crd_coscheduling, "crds/coscheduling.yaml")
MUSTER_EMBED(crd_framework, "crds/framework.yaml")
MUSTER_EMBED(crd_records, "crds/records.yaml")

namespace muster::kube {

std::string_view embedded_types() { return MUSTER_EMBEDDED(types); }
std::string_view embedded_resources() { return MUSTER_EMBEDDED(resources); }
std::string_view embedded_descriptions() { return MUSTER_EMBEDDED(descriptions); }

std::string_view embedded_user_roles() { return MUSTER_EMBEDDED(roles_users); }

std::vector<std::string_view> embedded_crds() {
  return {MUSTER_EMBEDDED(crd_kubeflow),
          MUSTER_EMBEDDED(crd_mpijob),
          MUSTER_EMBEDDED(crd_volcano),
          MUSTER_EMBEDDED(crd_t9k),
          MUSTER_EMBEDDED(crd_coscheduling),
          MUSTER_EMBEDDED(crd_framework),
          MUSTER_EMBEDDED(crd_records)};
}

}  // namespace muster::kube
