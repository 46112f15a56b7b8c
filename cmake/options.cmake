# Build options, and the flags that every target of the project is compiled with.

include(GNUInstallDirs)

# Without any of them: what a user needs.
option(BUILD_SHARED_LIBS "Build shared libraries; OFF: static ones, the modules in them" ON)
# LINTEL_TESTS is an earlier name.
option(BUILD_TESTING "Build the tests (needs GoogleTest)" "${LINTEL_TESTS}")
option(LINTEL_TOOLS "Build ptl_info and ptl_perf" ON)
option(LINTEL_GASNET "Build GASNet-EX over Portals" ON)
option(LINTEL_OFI "Build the provider of libfabric if libfabric is found" ON)
option(LINTEL_CRYPTO "Build the module crypto if libcrypto is found" ON)
option(LINTEL_VERBS "Build the module verbs if libibverbs is found" ON)
option(LINTEL_DPDK "Build the module dpdk if DPDK is found" ON)
option(LINTEL_PMIX "Build the module pmix if PMIx is found" ON)
option(LINTEL_STATIC_LIBSTDCXX
       "Contain libstdc++ and libgcc in the shared libraries if there are static ones: C programs start sooner" ON)
option(LINTEL_MANUAL "Build the manual pages (needs Python 3)" ON)
option(LINTEL_BENCHMARKS "Build the component benchmarks (needs Google Benchmark)" OFF)
option(LINTEL_HARDENING "Compile as distributions do: stack protector, _FORTIFY_SOURCE, CET, bound at the start" OFF)
option(LINTEL_WERROR "Treat warnings as errors" OFF)
option(LINTEL_ASSERTIONS "Check at run time what must hold (src/util/assert.h)" OFF)
option(LINTEL_FUZZ "Instrument everything for libFuzzer (needs Clang)" OFF)
if(NOT BUILD_SHARED_LIBS AND (BUILD_TESTING OR LINTEL_BENCHMARKS))
  message(FATAL_ERROR "Tests and benchmarks need BUILD_SHARED_LIBS=ON")
endif()
set(LINTEL_SANITIZE
    ""
    CACHE STRING "Sanitizers: empty, address (with undefined behaviour), or thread")
set_property(CACHE LINTEL_SANITIZE PROPERTY STRINGS "" address thread)
set(LINTEL_CACHE_LINE_BYTES
    64
    CACHE STRING "Distance of what different threads write: 64, 128, or 256 for A64FX")
set_property(CACHE LINTEL_CACHE_LINE_BYTES PROPERTY STRINGS 64 128 256)

get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT is_multi_config AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE
      RelWithDebInfo
      CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

find_program(LINTEL_CCACHE ccache)
mark_as_advanced(LINTEL_CCACHE)
if(LINTEL_CCACHE)
  # It keeps what uses a precompiled header, as the tests do, and finds in it what another build
  # directory or another clone made.
  set(launcher "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${LINTEL_CCACHE}")
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER "${launcher}")
    endif()
  endforeach()
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(lintel_options INTERFACE)
target_compile_options(
  lintel_options
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -fvisibility=hidden
            $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>
            $<$<BOOL:${LINTEL_WERROR}>:-Werror>)
target_compile_definitions(lintel_options INTERFACE $<$<BOOL:${LINTEL_ASSERTIONS}>:LINTEL_ASSERTIONS>
                                                    LINTEL_CACHE_LINE_BYTES=${LINTEL_CACHE_LINE_BYTES})

# What thread_annotations.h states about locks is checked. Not in tests: most have one thread.
add_library(lintel_lock_checks INTERFACE)
target_compile_options(lintel_lock_checks INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety>)

# Of packages. It costs the message path instructions, so other builds are without.
if(LINTEL_HARDENING)
  target_compile_options(lintel_options INTERFACE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
                                                  -Wformat -Werror=format-security)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(lintel_options INTERFACE -fcf-protection)
  else()
    target_compile_options(lintel_options INTERFACE -mbranch-protection=standard)
  endif()
  target_link_options(lintel_options INTERFACE LINKER:-z,relro LINKER:-z,now)
endif()

if(LINTEL_SANITIZE STREQUAL "address")
  set(sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
elseif(LINTEL_SANITIZE STREQUAL "thread")
  # GCC warns for every std::atomic_thread_fence under this sanitizer, which does not model fences.
  set(sanitizer_flags -fsanitize=thread -fno-omit-frame-pointer
                      $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
elseif(LINTEL_SANITIZE)
  message(FATAL_ERROR "LINTEL_SANITIZE=${LINTEL_SANITIZE}: choose address, thread or nothing")
endif()
if(LINTEL_FUZZ)
  list(APPEND sanitizer_flags -fsanitize=fuzzer-no-link)
endif()
if(sanitizer_flags)
  target_compile_options(lintel_options INTERFACE ${sanitizer_flags})
  target_link_options(lintel_options INTERFACE ${sanitizer_flags})
endif()

# lintel_add_cxx_runtime(<target>): what a shared library or module needs of libstdc++ and libgcc_s.
# To load and relocate all of them takes two fifths of the time in which a C program starts.
# The copies agree with each other, as all are of one build. No other unwinder comes upon functions
# that catch exceptions: calls of Portals are no cancellation points, and GASNet has no exceptions.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fPIC)
set(CMAKE_REQUIRED_LINK_OPTIONS -shared -static-libstdc++ -static-libgcc LINKER:--no-undefined)
check_cxx_source_compiles("#include <stdexcept>
                           void fail(const char* why) { throw std::runtime_error(why); }"
                          LINTEL_HAS_STATIC_LIBSTDCXX)
unset(CMAKE_REQUIRED_FLAGS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
function(lintel_add_cxx_runtime target)
  if(LINTEL_STATIC_LIBSTDCXX
     AND LINTEL_HAS_STATIC_LIBSTDCXX
     AND NOT LINTEL_SANITIZE
     AND NOT LINTEL_FUZZ)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
