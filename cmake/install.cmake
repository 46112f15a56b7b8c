# Installation: headers, libraries, pkg-config modules `portals4` and `portals4_runtime`, CMake
# package `Portals4` with the targets Portals4::portals and Portals4::portals_runtime. The packages
# have the version of the interface: clients ask for that. Each component is a package of a
# distribution (cmake/packages.cmake).

include(CMakePackageConfigHelpers)

file(GLOB public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.h")
install(
  FILES ${public_headers}
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT development)
install(
  TARGETS portals portals_runtime
  EXPORT Portals4Targets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          COMPONENT library
          NAMELINK_COMPONENT development
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)

set(package_directory "${CMAKE_INSTALL_LIBDIR}/cmake/Portals4")
install(
  EXPORT Portals4Targets
  NAMESPACE Portals4::
  DESTINATION "${package_directory}"
  COMPONENT development)
# What a static library needs of others, which may be shared: no `pkg-config --static` for those.
get_property(static_dependencies GLOBAL PROPERTY LINTEL_STATIC_DEPENDENCIES)
if(NOT BUILD_SHARED_LIBS)
  string(PREPEND static_dependencies "find_dependency(Threads)\nfind_dependency(PkgConfig)\n")
  get_property(static_packages GLOBAL PROPERTY LINTEL_STATIC_PACKAGES)
  list(JOIN static_packages " " static_packages)
  set(static_libraries "-lstdc++ -lm -pthread -ldl")
endif()
configure_package_config_file(
  cmake/package/Portals4Config.cmake.in "${PROJECT_BINARY_DIR}/package/Portals4Config.cmake"
  INSTALL_DESTINATION "${package_directory}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/package/Portals4ConfigVersion.cmake"
  VERSION ${LINTEL_API_VERSION}
  COMPATIBILITY SameMajorVersion)
install(
  FILES "${PROJECT_BINARY_DIR}/package/Portals4Config.cmake"
        "${PROJECT_BINARY_DIR}/package/Portals4ConfigVersion.cmake"
  DESTINATION "${package_directory}"
  COMPONENT development)

# Relative, so that the installed tree can be moved.
file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
foreach(module portals4 portals4_runtime)
  configure_file(cmake/package/${module}.pc.in "${PROJECT_BINARY_DIR}/package/${module}.pc" @ONLY)
  install(
    FILES "${PROJECT_BINARY_DIR}/package/${module}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT development)
endforeach()

install(
  FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  COMPONENT cluster)

# Programs to start from (docs/programs.md).
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/" DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples"
        COMPONENT cluster
        FILES_MATCHING PATTERN "*.c" PATTERN "*.h")

# For administrators and users of clusters (docs/cluster.md).
install(
  PROGRAMS "${PROJECT_SOURCE_DIR}/packaging/slurm/portals.sbatch"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/lintel/slurm"
  COMPONENT cluster)
# The prefix is known only at the time of installation.
install(
  CODE "set(LINTEL_PREFIX \"\${CMAKE_INSTALL_PREFIX}\")
configure_file(\"${PROJECT_SOURCE_DIR}/packaging/modulefiles/lintel.in\"
               \"${PROJECT_BINARY_DIR}/package/modulefile\" @ONLY)"
  COMPONENT cluster)
install(
  FILES "${PROJECT_BINARY_DIR}/package/modulefile"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/lintel/modulefiles"
  RENAME lintel
  COMPONENT cluster)

foreach(program ptl_info ptl_perf)
  if(TARGET ${program})
    install(
      FILES "${PROJECT_SOURCE_DIR}/packaging/completion/lintel.bash"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
      RENAME ${program}
      COMPONENT tools)
  endif()
endforeach()

# Removes what `cmake --install` or the target install put into the prefix.
if(NOT TARGET uninstall AND CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
  add_custom_target(
    uninstall COMMAND "${CMAKE_COMMAND}" "-DBUILD_DIRECTORY=${PROJECT_BINARY_DIR}" -P
                      "${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake")
endif()
