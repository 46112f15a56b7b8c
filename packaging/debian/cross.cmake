# Read by CPack when packages for another architecture are made (CPACK_PROJECT_CONFIG_FILE). Their
# dependencies are those of the libraries in the folder of LINTEL_SYSROOT, as the database of dpkg
# in it tells (tests/arm/prepare), or of packages of that architecture on this machine.
set(ENV{DEB_HOST_ARCH} "${CPACK_DEBIAN_PACKAGE_ARCHITECTURE}")
if(CPACK_LINTEL_SYSROOT)
  set(ENV{LINTEL_SYSROOT} "${CPACK_LINTEL_SYSROOT}")
  set(SHLIBDEPS_EXECUTABLE
      "${CMAKE_CURRENT_LIST_DIR}/shlibdeps_of_sysroot"
      CACHE INTERNAL "")
endif()
