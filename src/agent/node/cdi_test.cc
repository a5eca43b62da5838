#include "agent/node/cdi.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "agent/node/gpu_files.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/muster-cdi-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    const auto path = path_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string one_gpu(const std::string& name, const std::string& node) {
  return "{\"cdiVersion\": \"0.5.0\", \"kind\": \"nvidia.com/gpu\", \"devices\": [{\"name\": \"" +
         name + "\", \"containerEdits\": {\"deviceNodes\": [{\"path\": \"/dev/nvidia" + name +
         "\", \"hostPath\": \"" + node + "\"}]}}]}";
}

GpuFilesWish wish_for(std::vector<int> indices, const std::string& folder) {
  GpuFilesWish out;
  for (const int index : indices) {
    Gpu gpu;
    gpu.index = index;
    out.gpus.push_back(gpu);
  }
  out.cdi_folders = {folder};
  return out;
}

TEST(Cdi, JsonAndYamlSayTheSame) {
  const auto yaml = cdi::parse(R"(---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes: [{path: /dev/nvidia0}, {path: /dev/dri/card0, hostPath: /dev/null, permissions: rw}]
containerEdits:
  env: [A=b=c]
  mounts:
  - {hostPath: /lib/a.so.2, containerPath: /lib/a.so.2, options: [ro, nosuid, nodev, bind]}
  - {hostPath: /var/b, containerPath: /var/b, options: [rw]}
  hooks:
  - {hookName: createContainer, path: /usr/bin/x, args: [x, update-ldcache, --folder, /lib]}
)");
  ASSERT_TRUE(yaml) << yaml.error().message;
  EXPECT_EQ(yaml->kind, "nvidia.com/gpu");
  ASSERT_EQ(yaml->devices.count("0"), 1U);
  const auto& nodes = yaml->devices.at("0").nodes;
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].host_path, "/dev/nvidia0");
  EXPECT_EQ(nodes[1].host_path, "/dev/null");
  EXPECT_EQ(yaml->edits.env, std::vector<std::string>{"A=b=c"});
  ASSERT_EQ(yaml->edits.mounts.size(), 2U);
  EXPECT_TRUE(yaml->edits.mounts[0].read_only);
  EXPECT_FALSE(yaml->edits.mounts[1].read_only);
  ASSERT_EQ(yaml->edits.hooks.size(), 1U);
  EXPECT_TRUE(cdi::parse(one_gpu("0", "/dev/null")));
}

TEST(Cdi, WhatIsWrongIsSaid) {
  const std::string head = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n";
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "wanted an object"},
           {"kind: nvidia.com/gpu", "cdiVersion"},
           {"cdiVersion: 0.5.0\nkind: gpu", "kind \"gpu\""},
           {head + "devices: [{}]", "without a name"},
           {head + "devices: [{name: a}, {name: a}]", "twice"},
           {head + "containerEdits: {env: [NOTHING]}", "NAME=value"},
           {head + "containerEdits: {deviceNodes: [{path: /etc/x}]}", "below /dev"},
           {head + "containerEdits: {deviceNodes: [{path: /dev/../etc/x}]}", "below /dev"},
           {head + "containerEdits: {deviceNodes: [{path: /dev/a, permissions: x}]}", "rwm"},
           {head + "containerEdits: {mounts: [{hostPath: a, containerPath: /b}]}", "absolute"}}) {
    const auto read = cdi::parse(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find(says), std::string::npos) << read.error().message;
  }
}

TEST(Cdi, ALaterFolderGoesBeforeAnEarlierOneAndTwinsAreNobodys) {
  const Folder first, second;
  first.write("a.json", one_gpu("0", "/dev/zero"));
  second.write("a.json", one_gpu("0", "/dev/null"));
  second.write("b.json", one_gpu("1", "/dev/null"));
  second.write("c.json", one_gpu("1", "/dev/zero"));
  second.write("broken.yaml", "[");
  second.write("notes.txt", "[");
  const auto registry = cdi::Registry::load({first.path(), second.path(), "/no/such/folder"});
  const auto zero = registry.edits_of(kGpuKind, {"0"});
  ASSERT_TRUE(zero);
  EXPECT_EQ(zero->nodes.at(0).host_path, "/dev/null");
  EXPECT_FALSE(registry.edits_of(kGpuKind, {"1"}));
  EXPECT_EQ(registry.names(kGpuKind), std::vector<std::string>{"0"});
  EXPECT_EQ(registry.problems().size(), 2U);
}

TEST(Cdi, AContainerGetsTheDevicesOfItsGpusAlone) {
  const Folder folder;
  for (const auto* name : {"0", "1", "2"})
    folder.write(std::string(name) + ".json", one_gpu(name, "/dev/null"));
  const auto files = gpu_files(wish_for({0, 2}, folder.path()));
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_EQ(files->devices.size(), 2U);
  EXPECT_EQ(files->devices[0].target, "/dev/nvidia0");
  EXPECT_EQ(files->devices[1].target, "/dev/nvidia2");
  // One by its own name goes before one by its number.
  auto wish = wish_for({0}, folder.path());
  wish.gpus[0].uuid = "GPU-1";
  folder.write("u.json", one_gpu("GPU-1", "/dev/zero"));
  EXPECT_EQ(gpu_files(wish)->devices.at(0).source, "/dev/zero");
}

TEST(Cdi, AFileThatIsNotThereIsAnError) {
  const Folder folder;
  folder.write("0.json", one_gpu("0", folder.at("absent")));
  const auto files = gpu_files(wish_for({0}, folder.path()));
  ASSERT_FALSE(files);
  EXPECT_NE(files.error().message.find("which does not exist"), std::string::npos);
}

/// Libraries are found by the names that programs ask for, and by those that hooks would link.
TEST(Cdi, HooksAreAnsweredWithoutBeingRun) {
  const Folder folder;
  const auto library = folder.write("lib/libcuda.so.580.1", "x");
  fs::create_symlink("libcuda.so.580.1", folder.at("lib/libcuda.so.1"));
  fs::create_symlink("elsewhere", folder.at("lib/libcuda.so.9"));
  folder.write("cdi/gpu.yaml",
               R"(
cdiVersion: 0.6.0
kind: nvidia.com/gpu
devices: [{name: "0", containerEdits: {deviceNodes: [{path: /dev/nvidia0, hostPath: /dev/null}]}}]
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void, NVIDIA_CTK=1]
  mounts: [{hostPath: )" +
                   library + R"(, containerPath: /usr/lib64/libcuda.so.580.1, options: [ro]}]
  hooks:
  - {hookName: createContainer, path: /usr/bin/nvidia-cdi-hook, args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib64]}
  - {hookName: createContainer, path: /usr/bin/nvidia-cdi-hook, args: [nvidia-cdi-hook, create-symlinks, --link, "libcuda.so.1::/usr/lib64/libcuda.so"]}
  - {hookName: createContainer, path: /usr/bin/nvidia-cdi-hook, args: [nvidia-cdi-hook, chmod, --mode, "755"]}
)");
  const auto files = gpu_files(wish_for({0}, folder.at("cdi")));
  ASSERT_TRUE(files) << files.error().message;
  std::vector<std::string> targets;
  for (const auto& mount : files->mounts) {
    EXPECT_EQ(mount.source, library);
    EXPECT_TRUE(mount.read_only);
    targets.push_back(mount.target);
  }
  EXPECT_EQ(
      targets,
      (std::vector<std::string>{
          "/usr/lib64/libcuda.so", "/usr/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.580.1"}));
  ASSERT_EQ(files->notes.size(), 1U);
  EXPECT_NE(files->notes[0].find("chmod"), std::string::npos);
  std::vector<std::pair<std::string, std::string>> env{{"LD_LIBRARY_PATH", "/mine"},
                                                       {"NVIDIA_VISIBLE_DEVICES", "0"}};
  add_gpu_env(*files, env);
  EXPECT_EQ(
      env,
      (std::vector<std::pair<std::string, std::string>>{{"LD_LIBRARY_PATH", "/usr/lib64:/mine"},
                                                        {"NVIDIA_VISIBLE_DEVICES", "0"},
                                                        {"NVIDIA_CTK", "1"}}));
}

TEST(Cdi, WithoutADescriptionImagesGetTheMachinesDriver) {
  const Folder folder;
  const auto cuda = folder.write("lib/libcuda.so.1", "x");
  const auto smi = folder.write("bin/nvidia-smi", "x");
  const auto mounts = driver_mounts({{"/no/such", folder.at("lib")}, {folder.at("bin")}});
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[0].source, cuda);
  EXPECT_EQ(mounts[0].target, "/usr/local/nvidia/lib64/libcuda.so.1");
  EXPECT_EQ(mounts[1].source, smi);
  EXPECT_EQ(mounts[1].target, "/usr/local/nvidia/bin/nvidia-smi");
  const auto none = folder.at("cdi");
  auto wish = wish_for({0}, none);
  EXPECT_TRUE(gpu_files(wish)->library_folders.empty());
  wish.of_image = true;
  EXPECT_EQ(gpu_files(wish)->library_folders, std::vector<std::string>{"/usr/local/nvidia/lib64"});
}

}  // namespace
}  // namespace muster::agent
