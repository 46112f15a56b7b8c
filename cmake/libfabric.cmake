# libfabric, which the provider in ofi/ is for. LIBFABRIC_FOUND says whether it is built.

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND AND LINTEL_OFI AND BUILD_SHARED_LIBS)
  pkg_check_modules(LIBFABRIC IMPORTED_TARGET libfabric>=1.17)
endif()
if(NOT LIBFABRIC_FOUND)
  message(STATUS "libfabric (libfabric-dev) not found: its provider is not built")
endif()
