#include "main/commands.h"

#include <cstdio>

namespace muster {

int run_command(int, char**) {
  std::puts("muster 0.1.0");
  return 0;
}

}  // namespace muster
