# Programs under tools/. ptl_info reads the configuration table and the transport registry, which
# are private symbols of the library. ptl_perf uses the public interface only.
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
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tools")
  target_link_libraries(${name} PRIVATE ${library} lintel_options Threads::Threads)
  target_compile_definitions(${name} PRIVATE LINTEL_VERSION="${PROJECT_VERSION}")
  # Installed programs find the library beside them, wherever the tree is moved.
  file(RELATIVE_PATH bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
                              COMPONENT tools)
endfunction()

# The functions of drivers.
set_source_files_properties("${PROJECT_SOURCE_DIR}/tools/common/accelerator.cc" PROPERTIES INCLUDE_DIRECTORIES
                            "${PROJECT_SOURCE_DIR}/src")

if(LINTEL_TOOLS)
  # Both are headers only, so that the programs need nothing more at run time.
  foreach(header CLI/CLI.hpp nlohmann/json.hpp)
    string(MAKE_C_IDENTIFIER "LINTEL_${header}" variable)
    find_path(${variable} ${header})
    mark_as_advanced(${variable})
    if(NOT ${variable})
      message(FATAL_ERROR "The tools need ${header}: install libcli11-dev and nlohmann-json3-dev, "
                          "or configure with -DLINTEL_TOOLS=OFF")
    endif()
  endforeach()
  lintel_add_tool(ptl_info lintel_internals)
  # It also checks the variables of jobs by hand.
  target_sources(ptl_info PRIVATE "${PROJECT_SOURCE_DIR}/pmix/hand_environment.cc")
  target_include_directories(ptl_info PRIVATE "${PROJECT_SOURCE_DIR}/pmix")
  lintel_add_tool(ptl_perf portals_runtime)
endif()
