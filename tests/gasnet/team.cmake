# Teams and barriers. Label: gasnet.

foreach(mode seq par)
  add_executable(gasnet_team_probe_${mode} "${CMAKE_CURRENT_LIST_DIR}/team_probe.c")
  target_link_libraries(gasnet_team_probe_${mode} PRIVATE gasnet-portals4-${mode} lintel_options)
endforeach()

# lintel_add_team_test(<name> <mode> <ranks> <variable=value>...)
function(lintel_add_team_test name mode ranks)
  add_test(NAME gasnet.Teams.${name} COMMAND gasnetrun_portals4 -spawner=fork -n ${ranks}
                                             $<TARGET_FILE:gasnet_team_probe_${mode}>)
  set_tests_properties(
    gasnet.Teams.${name}
    PROPERTIES LABELS gasnet TIMEOUT 240 PROCESSORS 2 ENVIRONMENT "${ARGN}"
               PASS_REGULAR_EXPRESSION "are good" FAIL_REGULAR_EXPRESSION "its process is gone")
endfunction()

# The memory of a team with more ranks than a test can start.
add_executable(gasnet_team_scale "${CMAKE_CURRENT_LIST_DIR}/team_scale.cc" $<TARGET_OBJECTS:gasnet-seq-objects>)
target_include_directories(gasnet_team_scale PRIVATE "${PROJECT_SOURCE_DIR}/gasnet" "${PROJECT_SOURCE_DIR}/gasnet/include"
                                                     "${PROJECT_BINARY_DIR}/gasnet/include" "${PROJECT_SOURCE_DIR}/include")
target_compile_definitions(gasnet_team_scale PRIVATE GASNET_SEQ)
target_link_libraries(gasnet_team_scale PRIVATE portals_runtime portals lintel_options)
add_test(NAME gasnet.Teams.scale COMMAND gasnet_team_scale)
set_tests_properties(gasnet.Teams.scale PROPERTIES LABELS gasnet TIMEOUT 60)

set(apart GASNET_SUPERNODE_MAXSIZE=1)
lintel_add_team_test(one seq 1)
set_tests_properties(gasnet.Teams.one PROPERTIES PASS_REGULAR_EXPRESSION
                                                 "TM_SCRATCH_SIZE_MIN is deprecated.*are good")
lintel_add_team_test(neighbours seq 5)
lintel_add_team_test(mixed par 6 GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_team_test(apart seq 3 ${apart})
lintel_add_team_test(udp par 4 PTL_TRANSPORT=udp ${apart})
