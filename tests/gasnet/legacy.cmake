# Programs of GASNet-1. Label: gasnet.

foreach(mode seq par)
  add_executable(gasnet_legacy_probe_${mode} "${CMAKE_CURRENT_LIST_DIR}/legacy_probe.c")
  target_link_libraries(gasnet_legacy_probe_${mode} PRIVATE gasnet-portals4-${mode} lintel_options)
endforeach()

# lintel_add_legacy_test(<name> <mode> <ranks> <variable=value>...)
function(lintel_add_legacy_test name mode ranks)
  add_test(NAME gasnet.Legacy.${name} COMMAND gasnetrun_portals4 -spawner=fork -n ${ranks}
                                              $<TARGET_FILE:gasnet_legacy_probe_${mode}>)
  set_tests_properties(
    gasnet.Legacy.${name}
    PROPERTIES LABELS gasnet TIMEOUT 240 PROCESSORS 2 ENVIRONMENT "${ARGN}"
               PASS_REGULAR_EXPRESSION "is good")
endfunction()

set(apart GASNET_SUPERNODE_MAXSIZE=1)
lintel_add_legacy_test(neighbours seq 3)
lintel_add_legacy_test(apart par 2 ${apart})
lintel_add_legacy_test(udp seq 3 PTL_TRANSPORT=udp ${apart})
