# Installation: headers, libraries, pkg-config modules `portals4` and `portals4_runtime`, CMake
# package `Portals4` with the targets Portals4::portals and Portals4::portals_runtime. The packages
# have the version of the interface: clients ask for that. Each component is a package of a
# distribution (cmake/packages.cmake).

include(CMakePackageConfigHelpers)

# The directories of Debian: libraries lie in one of the architecture. Those of rpm distributions
# lie in lib64, and are executable files.
set(LINTEL_DEBIAN_DIRECTORIES OFF)
if(CMAKE_LIBRARY_ARCHITECTURE AND CMAKE_INSTALL_LIBDIR MATCHES "${CMAKE_LIBRARY_ARCHITECTURE}$")
  set(LINTEL_DEBIAN_DIRECTORIES ON)
elseif(CMAKE_INSTALL_LIBDIR STREQUAL "lib64")
  set(CMAKE_INSTALL_SO_NO_EXE OFF)
endif()

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
  get_property(static_libraries GLOBAL PROPERTY LINTEL_STATIC_LIBRARIES)
  list(JOIN static_libraries " " static_libraries)
  string(APPEND static_libraries " -lstdc++ -lm -pthread -ldl")
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

# The documentation, where messages of the library name it: docs/cluster.md and so on.
install(
  FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/CHANGELOG.md" "${PROJECT_SOURCE_DIR}/README.md"
        "${PROJECT_SOURCE_DIR}/CONTRIBUTING.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  COMPONENT documentation)
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/docs/"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs"
  COMPONENT documentation
  FILES_MATCHING
  PATTERN "*.md")
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/gasnet/docs/"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}/gasnet/docs"
  COMPONENT documentation
  FILES_MATCHING
  PATTERN "*.md")
install(
  FILES "${PROJECT_SOURCE_DIR}/gasnet/README.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}/gasnet"
  COMPONENT documentation)

# Programs to start from (docs/programs.md).
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/" DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples"
        COMPONENT development
        FILES_MATCHING PATTERN "*.c" PATTERN "*.h")

# For administrators and users of clusters (docs/cluster.md), beside the tools that they use.
install(
  PROGRAMS "${PROJECT_SOURCE_DIR}/packaging/slurm/portals.sbatch"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/lintel/slurm"
  COMPONENT tools)
# The prefix is known only at the time of installation.
install(
  CODE "set(LINTEL_PREFIX \"\${CMAKE_INSTALL_PREFIX}\")
configure_file(\"${PROJECT_SOURCE_DIR}/packaging/modulefiles/lintel.in\"
               \"${PROJECT_BINARY_DIR}/package/modulefile\" @ONLY)"
  COMPONENT tools)
install(
  FILES "${PROJECT_BINARY_DIR}/package/modulefile"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/lintel/modulefiles"
  RENAME lintel
  COMPONENT tools)

# Completion of the tools in bash, zsh and fish. All three call `words`.
if(LINTEL_TOOLS)
  set(completion "${PROJECT_SOURCE_DIR}/packaging/completion")
  set(zsh_functions "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND LINTEL_DEBIAN_DIRECTORIES)
    set(zsh_functions "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions") # where Debian's zsh looks
  endif()
  install(PROGRAMS "${completion}/words" DESTINATION "${CMAKE_INSTALL_DATADIR}/lintel/completion"
          COMPONENT tools)
  install(FILES "${completion}/lintel.zsh" DESTINATION "${zsh_functions}" RENAME _lintel
          COMPONENT tools)
  foreach(program ptl_info ptl_perf)
    install(FILES "${completion}/lintel.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
            RENAME ${program} COMPONENT tools)
    install(FILES "${completion}/lintel.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
            RENAME ${program}.fish COMPONENT tools)
  endforeach()
endif()

# Removes what `cmake --install` or the target install put into the prefix.
if(NOT TARGET uninstall AND CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
  add_custom_target(
    uninstall COMMAND "${CMAKE_COMMAND}" "-DBUILD_DIRECTORY=${PROJECT_BINARY_DIR}" -P
                      "${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake")
endif()
