# Puts, gets and events between the ranks of a job: neighbours, and others over shared memory and
# UDP. Label: gasnet.

foreach(mode seq par parsync)
  add_executable(gasnet_rma_probe_${mode} "${CMAKE_CURRENT_LIST_DIR}/rma_probe.c")
  target_link_libraries(gasnet_rma_probe_${mode} PRIVATE gasnet-portals4-${mode} portals_runtime portals lintel_options)
endforeach()

# lintel_add_rma_test(<name> <mode> <ranks> <arguments of the program> <variable=value>...)
function(lintel_add_rma_test name mode ranks arguments)
  separate_arguments(arguments)
  add_test(NAME gasnet.Rma.${name}
           COMMAND gasnetrun_portals4 -spawner=fork -n ${ranks} $<TARGET_FILE:gasnet_rma_probe_${mode}>
                   ${arguments})
  # In an orderly end no rank reports that a peer is gone.
  set_tests_properties(
    gasnet.Rma.${name} PROPERTIES LABELS gasnet TIMEOUT 240 PROCESSORS 2 ENVIRONMENT "${ARGN}"
                                  FAIL_REGULAR_EXPRESSION "its process is gone")
endfunction()

set(apart GASNET_SUPERNODE_MAXSIZE=1)
set(udp PTL_TRANSPORT=udp ${apart})
lintel_add_rma_test(neighbours seq 3 "1 400")
lintel_add_rma_test(neighbours.threads par 2 "4 200")
lintel_add_rma_test(mixed seq 4 "1 100" GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_rma_test(apart seq 4 "1 100" ${apart})
lintel_add_rma_test(apart.parsync parsync 2 "1 150" ${apart})
lintel_add_rma_test(apart.threads par 2 "4 200" ${apart})
lintel_add_rma_test(udp seq 3 "1 80" ${udp})
lintel_add_rma_test(udp.threads par 2 "4 100" ${udp})
# More ranks and threads than processors.
lintel_add_rma_test(neighbours.16 seq 16 "1 60")
lintel_add_rma_test(mixed.12.threads par 12 "4 15" GASNET_SUPERNODE_MAXSIZE=5)
lintel_add_rma_test(apart.16.threads par 16 "2 15" ${apart})
lintel_add_rma_test(udp.9.threads par 9 "3 15" ${udp})
# Transfers in parts, and more operations in flight than events.
lintel_add_rma_test(limits seq 3 "1 80 3000 24" ${apart})
lintel_add_rma_test(udp.limits par 2 "4 50 3000 64" ${udp})
lintel_add_rma_test(outside seq 2 "0 0" ${apart})
set_tests_properties(gasnet.Rma.outside PROPERTIES PASS_REGULAR_EXPRESSION
                                                   "gex_RMA_Put: 8 bytes at .* are not in a segment of endpoint 0")

# A short selection for the sanitizers.
set_property(
  TEST gasnet.Rma.neighbours.threads gasnet.Rma.mixed gasnet.Rma.udp.limits
  APPEND
  PROPERTY LABELS sanitized)
