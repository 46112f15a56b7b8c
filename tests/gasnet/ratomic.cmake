# Remote atomics: neighbours, others over shared memory and UDP, and both in one domain. Label:
# gasnet.

foreach(mode seq par)
  add_executable(gasnet_ratomic_probe_${mode} "${CMAKE_CURRENT_LIST_DIR}/ratomic_probe.c")
  target_link_libraries(gasnet_ratomic_probe_${mode} PRIVATE gasnet-portals4-${mode} lintel_options)
endforeach()

# lintel_add_ratomic_test(<name> <mode> <ranks> <arguments of the program> <variable=value>...)
function(lintel_add_ratomic_test name mode ranks arguments)
  separate_arguments(arguments)
  add_test(NAME gasnet.Atomics.${name}
           COMMAND gasnetrun_portals4 -spawner=fork -n ${ranks} $<TARGET_FILE:gasnet_ratomic_probe_${mode}>
                   ${arguments})
  set_tests_properties(
    gasnet.Atomics.${name}
    PROPERTIES LABELS gasnet TIMEOUT 240 PROCESSORS 2 ENVIRONMENT "${ARGN}"
               PASS_REGULAR_EXPRESSION "are good" FAIL_REGULAR_EXPRESSION "its process is gone;Sanitizer")
endfunction()

set(apart GASNET_SUPERNODE_MAXSIZE=1)
lintel_add_ratomic_test(neighbours par 3 "4 400")
lintel_add_ratomic_test(mixed seq 4 "1 300" GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_ratomic_test(mixed.threads par 4 "2 200" GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_ratomic_test(many seq 16 "1 20" GASNET_SUPERNODE_MAXSIZE=4)
lintel_add_ratomic_test(apart par 2 "2 300" ${apart})
lintel_add_ratomic_test(udp seq 3 "1 200" PTL_TRANSPORT=udp GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_ratomic_test(illegal seq 1 illegal)
lintel_add_ratomic_test(pair seq 1 pair)
lintel_add_ratomic_test(operation seq 2 operation ${apart})
lintel_add_ratomic_test(outside seq 2 outside ${apart})
foreach(pair "illegal|operations 0x4 are not legal for data type 0x20" "pair|give a team"
             "operation|operation 0x40000000" "outside|8 bytes at .* are not in a segment")
  string(REPLACE "|" ";" pair "${pair}")
  list(GET pair 0 name)
  list(GET pair 1 text)
  # Every rank fails here, one before the other, so the exit code is not checked.
  set_tests_properties(gasnet.Atomics.${name} PROPERTIES PASS_REGULAR_EXPRESSION "${text}"
                                                         FAIL_REGULAR_EXPRESSION "Sanitizer")
endforeach()
