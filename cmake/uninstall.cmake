# Removes the files that install manifests name, and the directories of Lintel that become empty.
#
# cmake -DBUILD_DIRECTORY=<build directory> -P uninstall.cmake

file(GLOB manifests "${BUILD_DIRECTORY}/install_manifest*.txt")
if(NOT manifests)
  message(FATAL_ERROR "nothing was installed from ${BUILD_DIRECTORY}: it has no install manifest")
endif()
foreach(manifest IN LISTS manifests)
  file(STRINGS "${manifest}" files)
  foreach(file IN LISTS files)
    file(REMOVE "$ENV{DESTDIR}${file}")
    # Directories with our name belong to us; the others to the system.
    get_filename_component(directory "${file}" DIRECTORY)
    while(directory MATCHES "/(lintel|Portals4)(/|$)")
      file(GLOB rest "$ENV{DESTDIR}${directory}/*")
      if(rest)
        break()
      endif()
      file(REMOVE_RECURSE "$ENV{DESTDIR}${directory}")
      get_filename_component(directory "${directory}" DIRECTORY)
    endwhile()
  endforeach()
  file(REMOVE "${manifest}")
endforeach()
