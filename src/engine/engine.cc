#include "engine/engine.h"

#include "engine/state.h"
#include "engine/volcano/session.h"

namespace muster::engine {

struct Engine::Impl {
  explicit Impl(Config config) : state(std::move(config)) {}
  State state;
};

Engine::Engine(Config config) : impl_(std::make_unique<Impl>(std::move(config))) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

void Engine::apply(const Event& event) { impl_->state.apply(event); }

Plan Engine::decide(Time now) {
  volcano::Session session(impl_->state, now);
  return session.run();
}

}  // namespace muster::engine
