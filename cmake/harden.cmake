# What makes a mistake in the program harder to use, and what makes the build the same bytes wherever it is made.
# docs/security.md says what each is good for; tools/check_hardening looks at the program, tools/reproducible builds twice and compares.

# Tables of addresses are read-only once the program has started, all of them at once; no stack is executable.
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

option(MUSTER_HARDEN "Compile with checks of stacks and buffers, and marks for control flow" ON)
if(MUSTER_HARDEN AND NOT MUSTER_SANITIZE)
  add_compile_options(-fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection=full)
  endif()
  # Needs optimisation, and some compilers define it already.
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  endif()
  # Where the sources lie is no part of the program. ccache gives the compiler relative paths already; the same flags in every clone let
  # each find what another compiled.
  add_compile_options(-ffile-compilation-dir=.)
  if(NOT MUSTER_CCACHE)
    add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=..)
  endif()
endif()

# Indexing past the end of a vector or string stops the program instead of reading on. It alone costs a small GET more than the 5 % that
# all of hardening may (docs/performance.md), so it is a choice of its own.
option(MUSTER_ASSERTIONS "Check indexes of containers (libstdc++ assertions)" OFF)
if(MUSTER_ASSERTIONS)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()
