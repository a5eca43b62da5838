# A room is one folder of src/, one static library, one namespace level.
#
#   muster_room(store DEPENDS base LIBS SQLite::SQLite3)
#
# compiles every .cc of the folder (sub-folders included) into muster_store, and every *_test.cc into the
# test program store_test. A room may include headers of the rooms in DEPENDS only: tools/check_rooms reads
# the same lines and compares them with the #include lines.
#
# All rooms share one precompiled header of what comes from outside (cmake/pch.h). ccache is told by a text what is
# in it, since its bytes differ from folder to folder.
set(MUSTER_PCH "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(MUSTER_PCH src/CMakeFiles/muster_pch.dir/cmake_pch.hxx.pch)
endif()

function(muster_precompile)
  if(NOT MUSTER_PCH)
    return()
  endif()
  file(WRITE ${CMAKE_BINARY_DIR}/empty_pch.cc "")
  add_library(muster_pch OBJECT ${CMAKE_BINARY_DIR}/empty_pch.cc)
  target_link_libraries(muster_pch PRIVATE ${ARGN})
  # It names files of this very folder, so it is not taken from ccache.
  set_target_properties(muster_pch PROPERTIES CXX_COMPILER_LAUNCHER "")
  target_precompile_headers(muster_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)
  target_compile_options(muster_pch PRIVATE "SHELL:-Xclang -fno-pch-timestamp" -fpch-instantiate-templates)
  file(SHA256 ${CMAKE_SOURCE_DIR}/cmake/pch.h headers)
  get_directory_property(options COMPILE_OPTIONS)
  get_directory_property(definitions COMPILE_DEFINITIONS)
  string(SHA256 sum "${headers} ${CMAKE_CXX_COMPILER_VERSION} ${Boost_VERSION} ${fmt_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_DEBUG} ${CMAKE_CXX_FLAGS_RELWITHDEBINFO} ${options} ${definitions}")
  file(WRITE ${CMAKE_BINARY_DIR}/${MUSTER_PCH}.sum ${sum})
endfunction()

# Compiles a target's sources with the shared header.
function(muster_use_precompiled target)
  if(NOT MUSTER_PCH)
    return()
  endif()
  # Relative to the build folder, where ninja runs the compiler, so that ccache finds in one clone what another compiled.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-include-pch> $<$<COMPILE_LANGUAGE:CXX>:${MUSTER_PCH}> "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  get_target_property(sources ${target} SOURCES)
  get_target_property(source_folder ${target} SOURCE_DIR)
  get_target_property(binary_folder ${target} BINARY_DIR)
  list(TRANSFORM sources PREPEND ${source_folder}/ REGEX "^[^/]")
  list(FILTER sources INCLUDE REGEX "\\.(cc|cpp)$")
  get_target_property(together ${target} UNITY_BUILD)
  if(together)
    # The files that CMake writes to include several of ours.
    list(LENGTH sources count)
    get_target_property(size ${target} UNITY_BUILD_BATCH_SIZE)
    math(EXPR last "(${count} - 1) / ${size}")
    foreach(number RANGE ${last})
      list(APPEND sources ${binary_folder}/CMakeFiles/${target}.dir/Unity/unity_${number}_cxx.cxx)
    endforeach()
  endif()
  set_property(SOURCE ${sources} TARGET_DIRECTORY ${target} APPEND PROPERTY OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/${MUSTER_PCH})
  add_dependencies(${target} muster_pch)
endfunction()

# The same for every target of a folder and of those below it.
function(muster_use_precompiled_below folder)
  get_directory_property(targets DIRECTORY ${folder} BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type MATCHES "EXECUTABLE|STATIC_LIBRARY")
      muster_use_precompiled(${target})
    endif()
  endforeach()
  get_directory_property(folders DIRECTORY ${folder} SUBDIRECTORIES)
  foreach(below ${folders})
    muster_use_precompiled_below(${below})
  endforeach()
endfunction()

function(muster_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;LIBS;TEST_LIBS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc ${dir}/*.S)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|benchmark|fuzz)\\.cc$")
  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${name}.cc "")
    set(sources ${CMAKE_BINARY_DIR}/empty_${name}.cc)
  endif()

  add_library(muster_${name} STATIC ${sources})
  if(MUSTER_UNITY)
    set_target_properties(muster_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  target_include_directories(muster_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(room ${ROOM_DEPENDS})
    target_link_libraries(muster_${name} PUBLIC muster_${room})
  endforeach()
  target_link_libraries(muster_${name} PUBLIC ${ROOM_LIBS})
  muster_use_precompiled(muster_${name})
  if(MUSTER_PROFILE)
    # Relative, so that ccache finds in one clone what another compiled.
    file(RELATIVE_PATH profile ${CMAKE_BINARY_DIR} ${MUSTER_PROFILE})
    # Code that was written after the profile was taken is compiled as without one; that is no news.
    target_compile_options(muster_${name} PRIVATE -fprofile-use=${profile} -Wno-profile-instr-unprofiled -Wno-profile-instr-out-of-date -Wno-backend-plugin)
    set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${MUSTER_PROFILE})
  endif()

  if(MUSTER_TESTS AND tests)
    add_executable(${name}_test ${tests})
    muster_use_precompiled(${name}_test)
    target_link_libraries(${name}_test PRIVATE muster_${name} muster_test_data GTest::gtest_main GTest::gmock ${ROOM_TEST_LIBS})
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS unit)
  endif()
endfunction()
