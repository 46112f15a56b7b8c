# Vector, indexed and strided puts and gets: neighbours, others over shared memory and UDP. Label:
# gasnet.

foreach(mode seq par)
  add_executable(gasnet_vis_probe_${mode} "${CMAKE_CURRENT_LIST_DIR}/vis_probe.c")
  target_link_libraries(gasnet_vis_probe_${mode} PRIVATE gasnet-portals4-${mode} lintel_options)
endforeach()

# lintel_add_vis_test(<name> <mode> <ranks> <arguments of the program> <variable=value>...)
function(lintel_add_vis_test name mode ranks arguments)
  separate_arguments(arguments)
  add_test(NAME gasnet.Vis.${name} COMMAND gasnetrun_portals4 -spawner=fork -n ${ranks}
                                           $<TARGET_FILE:gasnet_vis_probe_${mode}> ${arguments})
  set_tests_properties(
    gasnet.Vis.${name}
    PROPERTIES LABELS gasnet TIMEOUT 240 PROCESSORS 2 ENVIRONMENT "${ARGN}"
               PASS_REGULAR_EXPRESSION "are good" FAIL_REGULAR_EXPRESSION "its process is gone;Sanitizer")
endfunction()

set(apart GASNET_SUPERNODE_MAXSIZE=1)
set(udp PTL_TRANSPORT=udp ${apart})
lintel_add_vis_test(neighbours par 3 "2 200")
lintel_add_vis_test(mixed seq 4 "1 200" GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_vis_test(many seq 16 "1 20" GASNET_SUPERNODE_MAXSIZE=4)
lintel_add_vis_test(apart seq 3 "1 300" ${apart})
lintel_add_vis_test(apart.threads par 2 "4 100" ${apart})
lintel_add_vis_test(apart.credits par 2 "2 50" ${apart} GASNET_AM_CREDITS=2 GASNET_VIS_MAXCHUNK=300)
lintel_add_vis_test(apart.alone seq 2 "1 100" ${apart} GASNET_VIS_AMPIPE=0)
lintel_add_vis_test(udp seq 3 "1 150" ${udp})
lintel_add_vis_test(udp.threads par 2 "2 100" ${udp} GASNET_VIS_GET_MAXCHUNK=1000)
lintel_add_vis_test(range seq 2 range ${apart})
lintel_add_vis_test(udp.range seq 2 range ${udp})
lintel_add_vis_test(waits seq 1 waits)
lintel_add_vis_test(outside seq 2 outside ${apart})
lintel_add_vis_test(lengths seq 2 lengths ${apart})
set(text_outside "4000 times 8 bytes from .* on are not in a segment of endpoint 0 of rank 1")
set(text_lengths "source and destination have different lengths")
foreach(name outside lengths)
  # Every rank fails here, one before the other, so the exit code is not checked.
  set_tests_properties(gasnet.Vis.${name} PROPERTIES PASS_REGULAR_EXPRESSION "${text_${name}}"
                                                     FAIL_REGULAR_EXPRESSION "Sanitizer")
endforeach()
