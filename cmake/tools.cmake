# Programs under tools/. ptl_info reads the configuration table and the transport registry, so it
# is linked with the objects; ptl_perf sees what every client sees, the shared library.
#
# Sources: tools/<program>.cc and tools/<program>/*.cc, and tools/common/*.cc for both.

function(lintel_add_tool name library)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/${name}*.cc"
       "${PROJECT_SOURCE_DIR}/tools/${name}/*.cc")
  if(NOT sources)
    return()
  endif()
  file(GLOB common CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/common/*.cc")
  add_executable(${name} ${sources} ${common})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tools"
                                             "${PROJECT_SOURCE_DIR}/tools/${name}")
  target_link_libraries(${name} PRIVATE ${library} lintel_options Threads::Threads)
  target_compile_definitions(${name} PRIVATE LINTEL_VERSION="${PROJECT_VERSION}")
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()

if(LINTEL_TOOLS)
  lintel_add_tool(ptl_info lintel_objects)
  lintel_add_tool(ptl_perf portals)
endif()
