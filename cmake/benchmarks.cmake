# Component benchmarks: perf/*.cc and perf/components/*.cc in one program.

find_package(benchmark QUIET)
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/perf/*.cc"
     "${PROJECT_SOURCE_DIR}/perf/components/*.cc")
if(NOT benchmark_FOUND)
  message(STATUS "Google Benchmark (libbenchmark-dev) not found: perf_components is not built")
elseif(sources)
  add_executable(perf_components ${sources})
  target_link_libraries(perf_components PRIVATE lintel_objects benchmark::benchmark
                                                benchmark::benchmark_main)
  target_include_directories(perf_components PRIVATE "${PROJECT_SOURCE_DIR}/tests"
                                                     "${PROJECT_SOURCE_DIR}/perf")
endif()
