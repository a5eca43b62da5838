#include "main/agent_component.h"

#include "agent/agent.h"
#include "base/log.h"

namespace muster {
namespace {

agent::StreamKind kind_of(apiserver::PodStream kind) {
  switch (kind) {
    case apiserver::PodStream::kLog:
      return agent::StreamKind::kLog;
    case apiserver::PodStream::kExec:
      return agent::StreamKind::kExec;
    case apiserver::PodStream::kAttach:
      return agent::StreamKind::kAttach;
    case apiserver::PodStream::kPortForward:
      break;
  }
  return agent::StreamKind::kPortForward;
}

/// The server's idea of pod streams over the agent's.
class Streams final : public apiserver::PodStreams {
 public:
  explicit Streams(agent::PodStreamServer& server) : server_(server) {}
  Task<void> serve(apiserver::PodStream kind,
                   json::Value pod,
                   net::Target target,
                   net::Request request,
                   net::ResponseWriter& writer) override {
    return server_.serve(
        kind_of(kind), std::move(pod), std::move(target), std::move(request), writer);
  }

 private:
  agent::PodStreamServer& server_;
};

/// The server's idea of metrics over the agent's.
class Usage final : public apiserver::MetricsSource {
 public:
  explicit Usage(agent::Metrics& metrics) : metrics_(metrics) {}
  Task<json::Array> node_metrics() override { return metrics_.node_metrics(); }
  Task<json::Array> pod_metrics(std::string ns) override {
    return metrics_.pod_metrics(std::move(ns));
  }

 private:
  agent::Metrics& metrics_;
};

class AgentComponent final : public Component {
 public:
  explicit AgentComponent(ComponentContext& context)
      : context_(context), client_(context.make_client("system:muster-agent")) {
    agent::AgentOptions options;
    options.directory = context.directory + "/agent";
    options.hidden = context.directory;
    options.api_address = context.api_address;
    options.api_port = context.api_port;
    options.hollow = context.hollow;
    options.images_file = context.images;
    options.pids_max = context.pod_pids_max;
    agent_ = agent::make_agent(context.loop, *client_, std::move(options));
    streams_ = std::make_unique<Streams>(agent_->streams());
    usage_ = std::make_unique<Usage>(agent_->metrics());
  }
  std::string name() const override { return "agent"; }
  Task<Result<void>> start() override {
    auto started = co_await agent_->start();
    if (started) {
      context_.server.set_pod_streams(streams_.get());
      context_.server.set_metrics_source(usage_.get());
    }
    co_return started;
  }
  Task<void> stop() override {
    context_.server.set_pod_streams(nullptr);
    context_.server.set_metrics_source(nullptr);
    co_await agent_->stop(/*remove_pods=*/true);
  }

 private:
  ComponentContext& context_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<agent::Agent> agent_;
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<Usage> usage_;
};

}  // namespace

std::unique_ptr<Component> make_agent_component(ComponentContext& context) {
  return std::make_unique<AgentComponent>(context);
}

}  // namespace muster
