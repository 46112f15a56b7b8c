# Modules: parts of the library that need other libraries. Each is loaded when it is used, so that
# libportals itself needs nothing but the C and C++ run-time libraries (src/util/module.h).

find_package(PkgConfig QUIET)

# lintel_add_module(<name> <pattern of its sources> <imported target or library>...):
# lintel/<name>.so beside libportals.so, whose symbols it uses. A static library contains its
# modules.
function(lintel_add_module name pattern)
  file(GLOB sources CONFIGURE_DEPENDS "${pattern}")
  if(NOT BUILD_SHARED_LIBS)
    add_library(portals-${name} OBJECT ${sources})
    target_link_libraries(portals-${name} PRIVATE lintel_options lintel_lock_checks ${ARGN})
    add_dependencies(portals-${name} lintel_module_version)
    target_include_directories(
      portals-${name} PRIVATE "${LINTEL_GENERATED}" "${PROJECT_SOURCE_DIR}/include"
                              "${PROJECT_SOURCE_DIR}/src")
    target_compile_definitions(portals-${name} PRIVATE lintel_module=lintel_module_${name})
    # A shared library may contain them, as it may lintel_objects.
    set_target_properties(portals-${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    return()
  endif()
  add_library(portals-${name} MODULE ${sources})
  target_link_libraries(portals-${name} PRIVATE lintel_internals lintel_options lintel_lock_checks ${ARGN})
  add_dependencies(portals-${name} lintel_module_version)
  target_include_directories(portals-${name} PRIVATE "${LINTEL_GENERATED}")
  set_target_properties(
    portals-${name}
    PROPERTIES PREFIX ""
               OUTPUT_NAME ${name}
               LIBRARY_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/lintel"
               INSTALL_RPATH "$ORIGIN/.."
               BUILD_WITH_INSTALL_RPATH ON
               LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/module.map")
  # Only `lintel_module` is to be seen.
  target_link_options(portals-${name} PRIVATE
                      "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/module.map")
  lintel_add_cxx_runtime(portals-${name})
  if(NOT LINTEL_SANITIZE)
    target_link_options(portals-${name} PRIVATE "LINKER:--no-undefined")
  endif()
  set(component ${name})
  if(name STREQUAL "crypto")
    set(component library) # which every system can use
  endif()
  install(TARGETS portals-${name} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/lintel"
                                          COMPONENT ${component})
endfunction()

# lintel_place_module(<name> <pkg-config name> <prefix of pkg_check_modules> [<library>...]): puts a
# module into the static library. Programs need the pkg-config module, or only these of its
# libraries.
function(lintel_place_module name package prefix)
  if(BUILD_SHARED_LIBS)
    return()
  endif()
  target_sources(portals PRIVATE $<TARGET_OBJECTS:portals-${name}>)
  target_link_libraries(portals PRIVATE PkgConfig::${prefix})
  set_property(GLOBAL APPEND_STRING PROPERTY LINTEL_STATIC_MODULES "MODULE(${name}) ")
  if(ARGN)
    list(TRANSFORM ARGN PREPEND "-l" OUTPUT_VARIABLE libraries)
    list(TRANSFORM ${prefix}_LIBRARY_DIRS PREPEND "-L" OUTPUT_VARIABLE directories)
    set_property(GLOBAL APPEND PROPERTY LINTEL_STATIC_LIBRARIES ${directories} ${libraries})
  else()
    set_property(GLOBAL APPEND PROPERTY LINTEL_STATIC_PACKAGES ${package})
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY LINTEL_STATIC_DEPENDENCIES
               "pkg_check_modules(${prefix} REQUIRED QUIET IMPORTED_TARGET ${package})\n")
endfunction()

# Proof of the job key between nodes (PTL_JOB_KEY).
if(PkgConfig_FOUND AND LINTEL_CRYPTO)
  pkg_check_modules(LIBCRYPTO IMPORTED_TARGET libcrypto)
endif()
if(LIBCRYPTO_FOUND)
  lintel_add_module(crypto "${PROJECT_SOURCE_DIR}/src/crypto/*.cc" PkgConfig::LIBCRYPTO)
  lintel_place_module(crypto libcrypto LIBCRYPTO)
else()
  message(STATUS "libcrypto (libssl-dev) not found: without the module crypto, PTL_JOB_KEY cannot be "
                 "used on networks")
endif()

# Ethernet ports without the kernel.
if(PkgConfig_FOUND AND LINTEL_DPDK)
  pkg_check_modules(LIBDPDK IMPORTED_TARGET libdpdk>=22.11)
endif()
if(LIBDPDK_FOUND)
  lintel_add_module(dpdk "${PROJECT_SOURCE_DIR}/src/dpdk/*.cc" PkgConfig::LIBDPDK Threads::Threads)
  # Interrupt handles of one's own, which 22.11 does not call stable yet.
  target_compile_definitions(portals-dpdk PRIVATE ALLOW_EXPERIMENTAL_API)
  # `pkg-config --static libdpdk` names every driver as a static library. Drivers are loaded.
  lintel_place_module(dpdk libdpdk LIBDPDK rte_ethdev rte_mbuf rte_mempool rte_eal)
else()
  message(STATUS "DPDK (libdpdk-dev) not found: without the module dpdk, PTL_DPDK_PORTS cannot be used")
endif()

# RDMA devices.
if(PkgConfig_FOUND AND LINTEL_VERBS)
  pkg_check_modules(LIBIBVERBS IMPORTED_TARGET libibverbs>=1.11)
endif()
if(LIBIBVERBS_FOUND)
  lintel_add_module(verbs "${PROJECT_SOURCE_DIR}/src/verbs/*.cc" PkgConfig::LIBIBVERBS Threads::Threads)
  lintel_place_module(verbs libibverbs LIBIBVERBS)
else()
  message(STATUS "libibverbs (libibverbs-dev) not found: without the module verbs, RDMA devices cannot "
                 "be used")
endif()

get_property(static_modules GLOBAL PROPERTY LINTEL_STATIC_MODULES)
set_property(
  SOURCE src/util/module.cc
  APPEND
  PROPERTY COMPILE_DEFINITIONS "LINTEL_STATIC_MODULES=${static_modules}")
