# The provider of libfabric, which the program loads as any program does. One entry per transport,
# as most of the time of a test is that of starting processes.

if(TARGET lintel-fi)
  file(GLOB ofi_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/ofi/*.cc")
  add_executable(ofi_tests ${ofi_sources} $<TARGET_OBJECTS:test_support>)
  target_include_directories(ofi_tests PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_precompile_headers(ofi_tests REUSE_FROM test_support)
  target_compile_options(ofi_tests PRIVATE ${test_options})
  target_compile_definitions(
    ofi_tests PRIVATE LINTEL_OFI_PROVIDER_DIRECTORY="$<TARGET_FILE_DIR:lintel-fi>")
  # As the precompiled header has it.
  foreach(module dpdk verbs)
    if(TARGET portals-${module})
      string(TOUPPER LINTEL_HAS_${module} has_module)
      target_compile_definitions(ofi_tests PRIVATE ${has_module})
    endif()
  endforeach()
  target_link_libraries(ofi_tests PRIVATE portals PkgConfig::LIBFABRIC lintel_options Threads::Threads
                                          GTest::gtest_main GTest::gmock)
  add_dependencies(ofi_tests lintel-fi fake_drivers)
  set(ofi_others "-")
  foreach(transport local shm udp)
    add_test(NAME ofi.${transport} COMMAND ofi_tests "--gtest_filter=*/${transport}*")
    string(APPEND ofi_others "*/${transport}*:")
  endforeach()
  add_test(NAME ofi.others COMMAND ofi_tests "--gtest_filter=${ofi_others}FloodTest.*")
  add_test(NAME ofi.flood COMMAND ofi_tests "--gtest_filter=FloodTest.*")
  set_tests_properties(ofi.local ofi.shm ofi.udp ofi.others ofi.flood PROPERTIES LABELS ofi TIMEOUT 1500 COST 100)

  # Programs of libfabric and of Open MPI. Before these, the run-time library of a sanitizer would
  # have to be loaded. They are those of this machine, which load nothing for another processor.
  find_package(Python3 COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND AND NOT LINTEL_SANITIZE)
    get_target_property(manual_page lintel-fi LINTEL_MANUAL_PAGE)
    set(runner "${CMAKE_CURRENT_SOURCE_DIR}/ofi/run_libfabric_test.py")
    set(cases ptl_info)
    if(NOT CMAKE_CROSSCOMPILING)
      list(APPEND cases info pingpong_shm pingpong_udp open_mpi)
    endif()
    foreach(case ${cases})
      add_test(NAME ofi.${case} COMMAND Python3::Interpreter -B "${runner}" $<TARGET_FILE_DIR:lintel-fi> "${manual_page}" ${case})
      set_tests_properties(ofi.${case} PROPERTIES LABELS ofi TIMEOUT 120 PROCESSORS 2 SKIP_RETURN_CODE 77)
    endforeach()
  endif()
endif()
