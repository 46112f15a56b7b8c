# Run by CPack between staging and packing: what the policies of distributions want beyond the
# installation.
if(NOT CPACK_GENERATOR MATCHES "^(DEB|RPM)$")
  return()
endif()

find_program(gzip gzip REQUIRED)
file(GLOB_RECURSE pages "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/share/man/*")
if(pages)
  execute_process(COMMAND "${gzip}" -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
endif()
if(CPACK_GENERATOR STREQUAL "RPM")
  # Each package contains the licence (USER_FILELIST in cmake/packages.cmake).
  foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    string(TOUPPER ${component} upper)
    file(COPY "${CPACK_RESOURCE_FILE_LICENSE}"
         DESTINATION "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr/share/licenses/${CPACK_RPM_${upper}_PACKAGE_NAME}")
  endforeach()
  return()
endif()
# CPack strips programs and shared libraries only.
file(GLOB_RECURSE archives "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/lib/*.a")
if(archives)
  execute_process(COMMAND "${CPACK_LINTEL_STRIP}" --strip-debug ${archives} COMMAND_ERROR_IS_FATAL ANY)
endif()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package "${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr")
  set(documents "${root}/share/doc/${package}")
  file(READ "${CPACK_RESOURCE_FILE_LICENSE}" license)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  string(TIMESTAMP year "%Y" UTC)
  file(WRITE "${documents}/copyright"
       "Lintel, a library for the Portals 4.3 network programming interface\n\nCopyright ${year} The Lintel authors\n\n${license}")
  file(WRITE "${documents}/changelog.Debian"
       "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
       "  * Built from the release; its CHANGELOG.md tells what changed.\n\n"
       " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  set(overrides "${CMAKE_CURRENT_LIST_DIR}/debian/${package}.lintian-overrides")
  if(EXISTS "${overrides}")
    configure_file("${overrides}" "${root}/share/lintian/overrides/${package}" COPYONLY)
  endif()
  execute_process(COMMAND "${gzip}" -9nf "${documents}/changelog.Debian"
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
