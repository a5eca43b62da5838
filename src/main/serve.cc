#include "main/serve.h"

#include <pthread.h>
#include <signal.h>

#include <thread>

namespace muster {

int serve_until_signal(const std::function<Task<int>(net::Loop& loop, Signal& stop)>& work) {
  sigset_t signals;
  sigemptyset(&signals);
  // The last is our own word for the waiting thread.
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  net::Loop loop;
  const auto stop = loop.make_signal();
  std::thread waiter([&] {
    int number = 0;
    while (sigwait(&signals, &number) == 0 && number != SIGUSR2)
      loop.post([&stop] { stop->notify(); });
  });
  int code = 0;
  const auto task = [](Task<int> inner, int& exit_code) -> Task<void> {
    exit_code = co_await std::move(inner);
  };
  loop.run_until_done(task(work(loop, *stop), code));
  pthread_kill(waiter.native_handle(), SIGUSR2);
  waiter.join();
  return code;
}

}  // namespace muster
