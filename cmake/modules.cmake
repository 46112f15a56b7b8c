# Modules: parts of the library that need other libraries. Each is loaded when it is used, so that
# libportals itself needs nothing but the C and C++ run-time libraries (src/util/module.h).

find_package(PkgConfig QUIET)

set(LINTEL_MODULES "")

# lintel_add_module(<name> <imported target or library>...): libportals-<name>.so from src/<name>.
function(lintel_add_module name)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cc")
  add_library(portals-${name} MODULE ${sources})
  target_include_directories(portals-${name} PRIVATE "${PROJECT_SOURCE_DIR}/include"
                                                     "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(portals-${name} PRIVATE lintel_options ${ARGN})
  set_target_properties(portals-${name} PROPERTIES PREFIX lib)
  # Only the entry point is to be seen.
  target_link_options(portals-${name} PRIVATE
                      "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/module.map")
  if(NOT LINTEL_SANITIZE)
    target_link_options(portals-${name} PRIVATE "LINKER:--no-undefined")
  endif()
  install(TARGETS portals-${name} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  set(LINTEL_MODULES
      ${LINTEL_MODULES} ${name}
      PARENT_SCOPE)
endfunction()

# Proof of the job key between nodes (PTL_JOB_KEY).
if(PkgConfig_FOUND)
  pkg_check_modules(LIBCRYPTO IMPORTED_TARGET libcrypto)
endif()
if(LIBCRYPTO_FOUND)
  lintel_add_module(crypto PkgConfig::LIBCRYPTO)
else()
  message(STATUS "libcrypto (libssl-dev) not found: without the module crypto, PTL_JOB_KEY cannot be "
                 "used on networks")
endif()

# Ethernet ports without the kernel.
if(PkgConfig_FOUND)
  pkg_check_modules(LIBDPDK IMPORTED_TARGET libdpdk>=22.11)
endif()
if(LIBDPDK_FOUND)
  lintel_add_module(dpdk PkgConfig::LIBDPDK Threads::Threads)
  target_sources(portals-dpdk PRIVATE "${PROJECT_SOURCE_DIR}/src/util/crc32c.cc"
                                      "${PROJECT_SOURCE_DIR}/src/util/crc32c_folding.cc"
                                      "${PROJECT_SOURCE_DIR}/src/util/log.cc")
  # Interrupt handles of one's own, which 22.11 does not call stable yet.
  target_compile_definitions(portals-dpdk PRIVATE ALLOW_EXPERIMENTAL_API)
else()
  message(STATUS "DPDK (libdpdk-dev) not found: without the module dpdk, PTL_DPDK_PORTS cannot be used")
endif()

# RDMA devices.
if(PkgConfig_FOUND)
  pkg_check_modules(LIBIBVERBS IMPORTED_TARGET libibverbs>=1.11)
endif()
if(LIBIBVERBS_FOUND)
  lintel_add_module(verbs PkgConfig::LIBIBVERBS Threads::Threads)
  # Whole transports come out of it; the configuration stays in the library (src/verbs/verbs_module.h).
  file(GLOB reliable_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/reliable/*.cc")
  list(FILTER reliable_sources EXCLUDE REGEX "/configured.cc$")
  target_sources(portals-verbs PRIVATE ${reliable_sources}
                                       "${PROJECT_SOURCE_DIR}/src/util/descriptor_watch.cc"
                                       "${PROJECT_SOURCE_DIR}/src/util/asymmetric_fence.cc"
                                       "${PROJECT_SOURCE_DIR}/src/util/crc32c.cc"
                                       "${PROJECT_SOURCE_DIR}/src/util/crc32c_folding.cc"
                                       "${PROJECT_SOURCE_DIR}/src/util/descriptors_in_children.cc"
                                       "${PROJECT_SOURCE_DIR}/src/util/log.cc"
                                       "${PROJECT_SOURCE_DIR}/src/util/quick_clock.cc")
else()
  message(STATUS "libibverbs (libibverbs-dev) not found: without the module verbs, RDMA devices cannot "
                 "be used")
endif()
