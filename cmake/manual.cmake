# Manual pages, made when the project is built: functions and portals4(7) from the headers, tools
# from their --help, lintel.conf(5) from the configuration table. `reference` is the HTML reference,
# by Doxygen.

find_package(Python3 COMPONENTS Interpreter QUIET)
if(LINTEL_MANUAL AND NOT Python3_Interpreter_FOUND)
  message(STATUS "Python 3 not found: the manual pages are not built")
elseif(LINTEL_MANUAL)
  set(pages "${PROJECT_BINARY_DIR}/manual")
  set(make_pages "${PROJECT_SOURCE_DIR}/docs/manual/make_pages.py")
  set(headers "")
  foreach(header portals4.h portals4_lintel.h portals4_runtime.h)
    list(APPEND headers "${PROJECT_SOURCE_DIR}/include/${header}")
  endforeach()

  # lintel_add_pages(<name> <kind> INPUTS <input>... DEPENDS <file or target>...)
  function(lintel_add_pages name kind)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "INPUTS;DEPENDS")
    add_custom_command(
      OUTPUT "${pages}/${name}.stamp"
      COMMAND Python3::Interpreter -B "${make_pages}" ${kind} "${pages}" ${PROJECT_VERSION}
              ${arg_INPUTS}
      COMMAND "${CMAKE_COMMAND}" -E touch "${pages}/${name}.stamp"
      DEPENDS "${make_pages}" ${arg_DEPENDS}
      COMMENT "Manual pages: ${name}")
    set_property(GLOBAL APPEND PROPERTY LINTEL_PAGES "${pages}/${name}.stamp")
  endfunction()

  lintel_add_pages(functions functions INPUTS ${headers} DEPENDS ${headers})
  # With programs that are compiled and run as tests.
  set(examples "${PROJECT_SOURCE_DIR}/examples")
  set(types "${PROJECT_SOURCE_DIR}/include/portals4_types.h")
  lintel_add_pages(types types INPUTS "${types}" "${examples}"
                   DEPENDS "${types}" "${examples}/hello.c" "${examples}/concepts/iovec.c"
                           "${examples}/concepts/unexpected.c" "${examples}/concepts/flow_control.c")
  set(runtime "${PROJECT_SOURCE_DIR}/include/portals4_runtime.h")
  lintel_add_pages(runtime runtime INPUTS "${runtime}" "${examples}"
                   DEPENDS "${runtime}" "${examples}/jobs/hello.c")
  install(DIRECTORY "${pages}/man3" "${pages}/man7" DESTINATION "${CMAKE_INSTALL_MANDIR}"
          COMPONENT development)
  # The others ask programs that were built.
  if(NOT CMAKE_CROSSCOMPILING)
    add_executable(print_configuration docs/manual/print_configuration.cc)
    target_link_libraries(print_configuration PRIVATE lintel_internals lintel_options)
    lintel_add_pages(configuration configuration INPUTS $<TARGET_FILE:print_configuration>
                     DEPENDS print_configuration docs/manual/lintel.conf.head)
    install(DIRECTORY "${pages}/man5" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT library)
    foreach(tool ptl_info ptl_perf)
      if(TARGET ${tool})
        lintel_add_pages(${tool} tool INPUTS $<TARGET_FILE:${tool}> DEPENDS ${tool})
      endif()
    endforeach()
    if(LINTEL_TOOLS)
      install(DIRECTORY "${pages}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT tools
              FILES_MATCHING PATTERN "ptl_*")
    endif()
    if(TARGET gasnet_info)
      foreach(program gasnet_info gasnet_trace gasnetrun_portals4)
        lintel_add_pages(${program} tool INPUTS $<TARGET_FILE:${program}> DEPENDS ${program})
      endforeach()
      install(DIRECTORY "${pages}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT gasnet
              FILES_MATCHING PATTERN "gasnet*")
    endif()
  endif()
  get_property(stamps GLOBAL PROPERTY LINTEL_PAGES)
  add_custom_target(manual ALL DEPENDS ${stamps})
endif()

find_package(Doxygen QUIET)
if(DOXYGEN_FOUND)
  set(reference_directory "${PROJECT_BINARY_DIR}/reference")
  configure_file(docs/manual/Doxyfile.in Doxyfile @ONLY)
  add_custom_target(
    reference
    COMMAND Doxygen::doxygen "${PROJECT_BINARY_DIR}/Doxyfile"
    COMMENT "HTML reference: ${reference_directory}/html/index.html"
    VERBATIM)
else()
  add_custom_target(
    reference
    COMMAND "${CMAKE_COMMAND}" -E echo "The target reference needs Doxygen, which was not found: install doxygen and configure again"
    COMMAND "${CMAKE_COMMAND}" -E false
    VERBATIM)
endif()
