# Fuzzers of all code that reads data of others (tests/fuzz/parsers). Each is built as a fuzzer with
# libFuzzer in the preset fuzz. Elsewhere it is a test that replays its corpus.
# over: with libFuzzer in the preset fuzz; everywhere else a test that replays its corpus.

# Random numbers of the kernel would make runs differ, so they are derived from a seed.
set(parser_fuzzers frames network messages devices lanes segments jobs configuration)
set(source_of_devices messages)
set(seeded_fuzzers frames network)
if(LIBIBVERBS_FOUND)
  list(APPEND parser_fuzzers rdma)
endif()

set(fuzzers_directory "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/parsers")
set(fuzz_seconds 30 CACHE STRING "How long the test of each fuzzer runs in the preset fuzz")
add_custom_target(parser_fuzzers)
foreach(name ${parser_fuzzers})
  set(target fuzz_${name})
  set(source ${name})
  if(DEFINED source_of_${name})
    set(source ${source_of_${name}})
  endif()
  add_executable(${target} "${fuzzers_directory}/${source}.cc")
  target_include_directories(
    ${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/pmix"
                      "${PROJECT_SOURCE_DIR}/include")
  target_compile_options(${target} PRIVATE ${test_options})
  target_link_libraries(${target} PRIVATE lintel_options Threads::Threads GTest::gtest ${CMAKE_DL_LIBS})
  if(name IN_LIST seeded_fuzzers)
    target_sources(
      ${target} PRIVATE simulation/repeatable_random.cc
                        "$<FILTER:$<TARGET_OBJECTS:lintel_objects>,EXCLUDE,/util/random\\.cc>")
  else()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:lintel_objects>)
  endif()
  # Modules use functions of the library that this program contains.
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  add_dependencies(parser_fuzzers ${target})
  if(LINTEL_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz.parsers.${name}
             COMMAND "${PROJECT_SOURCE_DIR}/scripts/fuzz" --test "$<TARGET_FILE:${target}>"
                     "${fuzzers_directory}/corpus/${name}" ${fuzz_seconds})
    set_tests_properties(fuzz.parsers.${name} PROPERTIES LABELS fuzz TIMEOUT 600)
  else()
    target_sources(${target} PRIVATE "${fuzzers_directory}/replay.cc")
    add_test(NAME fuzz.parsers.${name} COMMAND ${target} "${fuzzers_directory}/corpus/${name}")
    set_tests_properties(fuzz.parsers.${name} PROPERTIES LABELS fuzz TIMEOUT 300)
  endif()
endforeach()
if(TARGET portals-crypto)
  add_dependencies(fuzz_network portals-crypto)
  target_compile_definitions(
    fuzz_network PRIVATE LINTEL_HAS_CRYPTO
                         LINTEL_MODULE_DIRECTORY="${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/lintel")
endif()
target_compile_definitions(fuzz_devices PRIVATE LINTEL_FUZZ_DEVICES)
target_sources(fuzz_jobs PRIVATE "${PROJECT_SOURCE_DIR}/pmix/job_values.cc"
                                 "${PROJECT_SOURCE_DIR}/pmix/hand_environment.cc"
                                 "${PROJECT_SOURCE_DIR}/pmix/shared_fetch.cc")
if(TARGET fuzz_rdma)
  target_sources(fuzz_rdma PRIVATE $<TARGET_OBJECTS:verbs_with_stand_in>)
  target_include_directories(fuzz_rdma PRIVATE ${LIBIBVERBS_INCLUDE_DIRS} "${LINTEL_GENERATED}")
endif()
