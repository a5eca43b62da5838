# A room is one folder of src/, one static library, one namespace level.
#
#   muster_room(store DEPENDS base LIBS SQLite::SQLite3)
#
# compiles every .cc of the folder (sub-folders included) into muster_store, and every *_test.cc into the
# test program store_test. A room may include headers of the rooms in DEPENDS only: tools/check_rooms reads
# the same lines and compares them with the #include lines.
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
  target_include_directories(muster_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(room ${ROOM_DEPENDS})
    target_link_libraries(muster_${name} PUBLIC muster_${room})
  endforeach()
  target_link_libraries(muster_${name} PUBLIC ${ROOM_LIBS})
  if(MUSTER_PROFILE)
    # Relative, so that ccache finds in one clone what another compiled.
    file(RELATIVE_PATH profile ${CMAKE_BINARY_DIR} ${MUSTER_PROFILE})
    # Code that was written after the profile was taken is compiled as without one; that is no news.
    target_compile_options(muster_${name} PRIVATE -fprofile-use=${profile} -Wno-profile-instr-unprofiled -Wno-profile-instr-out-of-date -Wno-backend-plugin)
    set_source_files_properties(${sources} PROPERTIES OBJECT_DEPENDS ${MUSTER_PROFILE})
  endif()

  if(MUSTER_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE muster_${name} GTest::gtest_main GTest::gmock ${ROOM_TEST_LIBS})
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS unit)
  endif()
endfunction()
