# Packages of distributions, by CPack: the target `package`, or `cpack -G DEB` and `cpack -G RPM`.
# Each component of the installation is a package: libraries, headers, tools, one for each module
# that needs other libraries, debug symbols. The preset `package` has the directories of
# distributions.

set(CPACK_PACKAGE_NAME lintel)
set(CPACK_PACKAGE_VENDOR Lintel)
# Who makes the packages, as Debian's tools are told.
set(CPACK_PACKAGE_CONTACT "Lintel <packages@example.org>")
if(DEFINED ENV{DEBEMAIL})
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Portals 4.3 network programming interface")
set(CPACK_PACKAGE_DESCRIPTION
    "Lintel connects the processes of parallel programs through shared memory within a node, and
through InfiniBand, RoCE, UDP or Ethernet ports between nodes.")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
# Files that name the prefix name that of the package.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/packaging/before_packing.cmake")
set(CPACK_COMPONENTS_GROUPING IGNORE)

# A package has the directories of its distributions. The preset package-rpm has those of rpm
# distributions on Debian, too.
find_program(LINTEL_DPKG_DEB dpkg-deb)
find_program(LINTEL_RPMBUILD rpmbuild)
mark_as_advanced(LINTEL_DPKG_DEB LINTEL_RPMBUILD)
if(LINTEL_DPKG_DEB AND LINTEL_DEBIAN_DIRECTORIES)
  set(CPACK_GENERATOR DEB)
elseif(LINTEL_RPMBUILD)
  set(CPACK_GENERATOR RPM)
else()
  set(CPACK_GENERATOR TGZ)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE "https://www.sandia.gov/portals/")
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib")
set(CPACK_LINTEL_STRIP "${CMAKE_STRIP}")
if(CMAKE_CROSSCOMPILING)
  set(architecture_aarch64 arm64)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${architecture_${CMAKE_SYSTEM_PROCESSOR}})
  set(CPACK_OBJCOPY_EXECUTABLE "${CMAKE_OBJCOPY}")
  set(CPACK_READELF_EXECUTABLE "${CMAKE_READELF}")
  set(CPACK_LINTEL_SYSROOT "${LINTEL_SYSROOT}")
  set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/packaging/debian/cross.cmake")
endif()
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE BSD-3-Clause)
set(CPACK_RPM_PACKAGE_GROUP "System Environment/Libraries")
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_INSTALL_WITH_EXEC ON) # else libraries are not stripped
set(CPACK_RPM_DEBUGINFO_PACKAGE ON)
# CPack puts the new path of a source over the old one, which must not be shorter.
set(CPACK_RPM_BUILD_SOURCE_DIRS_PREFIX /usr/src)
foreach(directory IN ITEMS "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
  string(LENGTH "${directory}" length)
  if(length LESS 14) # /usr/src/src_0
    set(CPACK_RPM_DEBUGINFO_PACKAGE OFF)
    message(STATUS "The path ${directory} is shorter than 14 characters: rpm packages have no debug information; build at a longer path to have it")
  endif()
endforeach()
set(CPACK_RPM_SPEC_MORE_DEFINE "%define __brp_strip '${PROJECT_SOURCE_DIR}/packaging/rpm/strip'\n%define _build_id_links none")
# Directories that the system owns.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/share/man /usr/share/man/man1 /usr/share/man/man3 /usr/share/man/man5 /usr/share/man/man7
    /usr/lib/cmake /usr/lib64/cmake /usr/lib64/pkgconfig /usr/share/bash-completion
    /usr/share/bash-completion/completions /usr/share/zsh /usr/share/zsh/site-functions /usr/share/fish
    /usr/share/fish/vendor_completions.d /usr/share/licenses)

# lintel_package(<component> <package> <section of Debian> <component needed or ""> <summary>
# <description>): names in Debian and, by its habits, in RPM.
function(lintel_package component package section needed summary description)
  string(TOUPPER ${component} upper)
  set(release "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${description}" PARENT_SCOPE)
  string(REGEX REPLACE "-dev$" "-devel" rpm_package ${package})
  set(CPACK_RPM_${upper}_PACKAGE_NAME ${rpm_package} PARENT_SCOPE)
  # packaging/before_packing.cmake puts it there.
  set(CPACK_RPM_${upper}_USER_FILELIST "%license /usr/share/licenses/${rpm_package}/LICENSE" PARENT_SCOPE)
  if(section STREQUAL "libdevel")
    set(CPACK_RPM_${upper}_PACKAGE_GROUP Development/Libraries PARENT_SCOPE)
  endif()
  set(CPACK_RPM_${upper}_PACKAGE_SUMMARY "${summary}" PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_DESCRIPTION "${description}" PARENT_SCOPE)
  if(needed)
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${needed} (= ${release})" PARENT_SCOPE)
    set(CPACK_RPM_${upper}_PACKAGE_REQUIRES "${needed} = ${release}" PARENT_SCOPE)
  endif()
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
endfunction()

lintel_package(
  library libportals4 libs "" "Portals 4.3 network programming interface: libraries"
  "What programs need at run time: shared memory within a node, UDP\nbetween nodes.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "libipsec-mb1") # loaded by the module crypto if it is there
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "lintel-doc, lintel-tools, lintel-verbs, lintel-dpdk, lintel-pmix, liblintel-libfabric")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
    "${PROJECT_BINARY_DIR}/package/shlibs;${PROJECT_BINARY_DIR}/package/triggers;${PROJECT_BINARY_DIR}/package/symbols")
set(CPACK_RPM_LIBRARY_POST_INSTALL_SCRIPT_FILE "${PROJECT_SOURCE_DIR}/packaging/rpm/ldconfig")
set(CPACK_RPM_LIBRARY_POST_UNINSTALL_SCRIPT_FILE "${PROJECT_SOURCE_DIR}/packaging/rpm/ldconfig")
set(CPACK_RPM_LIBRARY_PACKAGE_SUGGESTS "lintel-doc, lintel-tools, lintel-verbs, lintel-dpdk, lintel-pmix, liblintel-libfabric")
lintel_package(
  development libportals-dev libdevel libportals4 "Portals 4.3 network programming interface: headers"
  "What programs are built with: headers, pkg-config modules, CMake\npackage, manual pages and examples.")
lintel_package(documentation lintel-doc doc "" "Portals 4.3 network programming interface: documentation"
               "How to install, configure, program and measure; what messages mean.")
set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOCUMENTATION_DEBUGINFO_PACKAGE OFF)
set(CPACK_RPM_DOCUMENTATION_PACKAGE_ARCHITECTURE noarch)
if(LINTEL_TOOLS)
  lintel_package(
    tools lintel-tools utils libportals4 "Portals 4.3 network programming interface: tools"
    "ptl_info tells which networks are used and why; ptl_perf measures\nlatency, message rate and bandwidth. With a batch script for Slurm and\na module file.")
endif()
foreach(module verbs dpdk pmix)
  if(TARGET portals-${module} AND BUILD_SHARED_LIBS)
    set(what_verbs "InfiniBand and RoCE devices")
    set(what_dpdk "Ethernet ports through DPDK")
    set(what_pmix "jobs started by srun and mpirun")
    lintel_package(${module} lintel-${module} libs libportals4
                   "Portals 4.3 network programming interface: ${what_${module}}"
                   "The module of the Portals library for ${what_${module}}.\nIt is loaded when it is used.")
  endif()
endforeach()
if(TARGET lintel-fi)
  lintel_package(ofi liblintel-libfabric libs libportals4
                 "Portals 4.3 network programming interface: provider for libfabric"
                 "Programs over libfabric, among them MPI, use the Portals library\nthrough the provider `lintel`.")
endif()
if(TARGET gasnet-portals4-seq)
  set(what "The communication layer of PGAS languages, over the Portals library")
  lintel_package(gasnet gasnet-portals4 libs libportals4 "GASNet-EX over Portals 4.3: libraries"
                 "${what}:\nlibraries and the programs that start jobs and tell what is there.")
  lintel_package(
    gasnet_development gasnet-portals4-dev libdevel gasnet-portals4
    "GASNet-EX over Portals 4.3: headers" "${what}:\nheaders, static libraries, pkg-config modules and fragments of makefiles.")
  # Programs link what the libraries need, too.
  string(APPEND CPACK_DEBIAN_GASNET_DEVELOPMENT_PACKAGE_DEPENDS
         ", libportals-dev (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), libstdc++-12-dev | libstdc++-dev")
  string(APPEND CPACK_RPM_GASNET_DEVELOPMENT_PACKAGE_REQUIRES
         ", libportals-devel = ${PROJECT_VERSION}-${CPACK_RPM_PACKAGE_RELEASE}, libstdc++-devel")
  set(shlibs "${PROJECT_BINARY_DIR}/package/gasnet/shlibs")
  file(WRITE "${shlibs}" "")
  foreach(library gasnet-portals4-seq gasnet-portals4-par gasnet-portals4-parsync gasnet_tools-seq gasnet_tools-par)
    file(APPEND "${shlibs}" "lib${library} 0 gasnet-portals4 (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})\n")
  endforeach()
  set(CPACK_DEBIAN_GASNET_PACKAGE_CONTROL_EXTRA "${shlibs};${PROJECT_BINARY_DIR}/package/triggers")
  set(CPACK_RPM_GASNET_POST_INSTALL_SCRIPT_FILE "${PROJECT_SOURCE_DIR}/packaging/rpm/ldconfig")
  set(CPACK_RPM_GASNET_POST_UNINSTALL_SCRIPT_FILE "${PROJECT_SOURCE_DIR}/packaging/rpm/ldconfig")
endif()

# The libraries are replaced by packages of the same name only.
file(WRITE "${PROJECT_BINARY_DIR}/package/shlibs"
     "libportals 4 libportals4 (>= ${PROJECT_VERSION})\nlibportals_runtime 4 libportals4 (>= ${PROJECT_VERSION})\n")
file(WRITE "${PROJECT_BINARY_DIR}/package/triggers" "activate-noawait ldconfig\n")
configure_file(packaging/debian/libportals4.symbols package/symbols COPYONLY)

include(CPack)
