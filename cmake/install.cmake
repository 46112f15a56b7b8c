# Installation: headers, libraries, pkg-config modules `portals4` and `portals4_runtime`, CMake
# package `Portals4` with the targets Portals4::portals and Portals4::portals_runtime. The packages
# have the version of the interface: clients ask for that.

include(CMakePackageConfigHelpers)

file(GLOB public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.h")
install(FILES ${public_headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(
  TARGETS portals portals_runtime
  EXPORT Portals4Targets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")

set(package_directory "${CMAKE_INSTALL_LIBDIR}/cmake/Portals4")
install(
  EXPORT Portals4Targets
  NAMESPACE Portals4::
  DESTINATION "${package_directory}")
configure_package_config_file(
  cmake/package/Portals4Config.cmake.in "${PROJECT_BINARY_DIR}/package/Portals4Config.cmake"
  INSTALL_DESTINATION "${package_directory}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/package/Portals4ConfigVersion.cmake"
  VERSION ${LINTEL_API_VERSION}
  COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/Portals4Config.cmake"
              "${PROJECT_BINARY_DIR}/package/Portals4ConfigVersion.cmake"
        DESTINATION "${package_directory}")

# Relative, so that the installed tree can be moved.
file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
foreach(module portals4 portals4_runtime)
  configure_file(cmake/package/${module}.pc.in "${PROJECT_BINARY_DIR}/package/${module}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/package/${module}.pc"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# Programs to start from (docs/programs.md).
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/" DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples"
        FILES_MATCHING PATTERN "*.c" PATTERN "*.h")

# For administrators and users of clusters (docs/cluster.md).
install(PROGRAMS "${PROJECT_SOURCE_DIR}/packaging/slurm/portals.sbatch"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/lintel/slurm")
install(FILES "${PROJECT_SOURCE_DIR}/packaging/modulefiles/lintel"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/lintel/modulefiles")
