# Broadcasts, reductions and barriers against a model: neighbours, nodes over shared memory and UDP.
# Label: gasnet.

foreach(mode seq par)
  add_executable(gasnet_coll_probe_${mode} "${CMAKE_CURRENT_LIST_DIR}/coll_probe.c")
  target_link_libraries(gasnet_coll_probe_${mode} PRIVATE gasnet-portals4-${mode} lintel_options)
endforeach()

# lintel_add_coll_test(<name> <mode> <ranks> <arguments> <what it prints> <variable=value>...)
function(lintel_add_coll_test name mode ranks arguments prints)
  separate_arguments(arguments)
  add_test(NAME gasnet.Coll.${name}
           COMMAND gasnetrun_portals4 -spawner=fork -n ${ranks} $<TARGET_FILE:gasnet_coll_probe_${mode}>
                   ${arguments})
  set_tests_properties(
    gasnet.Coll.${name}
    PROPERTIES LABELS gasnet TIMEOUT 240 PROCESSORS 2 ENVIRONMENT "${ARGN}" PASS_REGULAR_EXPRESSION
               "${prints}" FAIL_REGULAR_EXPRESSION "its process is gone;not so")
endfunction()

set(apart GASNET_SUPERNODE_MAXSIZE=1)
set(udp PTL_TRANSPORT=udp ${apart})
set(good "collectives of [0-9]+ ranks are good")
lintel_add_coll_test(one seq 1 "random 400 1" ${good})
lintel_add_coll_test(neighbours seq 5 "random 400 2" ${good})
lintel_add_coll_test(mixed seq 7 "random 300 3" ${good} GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_coll_test(mixed.udp par 6 "random 200 4" ${good} PTL_TRANSPORT=udp GASNET_SUPERNODE_MAXSIZE=3)
lintel_add_coll_test(apart seq 8 "random 200 5" ${good} ${apart})
lintel_add_coll_test(udp seq 3 "random 200 6" ${good} ${udp})
lintel_add_coll_test(many seq 16 "random 60 7" ${good} ${apart})
# Without the thread of Portals only polls carry on a collective. So none completes in rank 0, which
# starts first and does not poll while it computes.
set(all "4 of 4 completed while")
lintel_add_coll_test(compute seq 4 compute ${all} ${apart})
lintel_add_coll_test(compute.nodes seq 5 compute ${all} GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_coll_test(compute.udp seq 4 compute ${all} ${udp})
lintel_add_coll_test(compute.alone seq 4 compute-alone "0 of 4 completed while" ${udp} PTL_PROGRESS=caller
                     GASNET_EXITTIMEOUT=1)
lintel_add_coll_test(order seq 2 order "calls start in any order" ${apart})
lintel_add_coll_test(order.udp seq 2 order "calls start in any order" ${udp})
# The bits of sums that depend on the order of additions.
lintel_add_coll_test(sums seq 6 sums "sums f2c9a6f24f18966a" GASNET_SUPERNODE_MAXSIZE=3)
lintel_add_coll_test(sums.udp seq 6 sums "sums fe9654ceecff44ff" ${udp})

# The costs of calls with more places than a test can start.
add_executable(gasnet_coll_scale "${CMAKE_CURRENT_LIST_DIR}/coll_scale.cc" "${PROJECT_SOURCE_DIR}/gasnet/coll/schedule.cc")
target_include_directories(gasnet_coll_scale PRIVATE "${PROJECT_SOURCE_DIR}/gasnet")
target_link_libraries(gasnet_coll_scale PRIVATE gasnet-portals4-seq-static lintel_options)
add_test(NAME gasnet.Coll.scale COMMAND gasnet_coll_scale)
set_tests_properties(gasnet.Coll.scale PROPERTIES LABELS gasnet TIMEOUT 120)
add_executable(gasnet_long_yields_test "${CMAKE_CURRENT_LIST_DIR}/long_yields_test.cc")
target_include_directories(gasnet_long_yields_test PRIVATE "${PROJECT_SOURCE_DIR}/gasnet")
target_link_libraries(gasnet_long_yields_test PRIVATE lintel_options)
add_test(NAME gasnet.LongYields COMMAND gasnet_long_yields_test)
set_tests_properties(gasnet.LongYields PROPERTIES LABELS gasnet TIMEOUT 60)
lintel_add_coll_test(pieces seq 5 "pieces" "pieces of 5 ranks are good")
lintel_add_coll_test(pieces.udp par 4 "pieces" "pieces of 4 ranks are good" ${udp})
# Several threads make and use teams at the same time.
set(threads "threads of [0-9]+ ranks are good")
lintel_add_coll_test(threads.neighbours par 3 "threads 15" ${threads})
lintel_add_coll_test(threads.mixed par 4 "threads 12" ${threads} GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_coll_test(threads.apart par 3 "threads 12" ${threads} ${apart})
lintel_add_coll_test(threads.udp par 3 "threads 8" ${threads} ${udp})
# The root starts calls before the others.
lintel_add_coll_test(ahead.neighbours seq 3 ahead "nobody of 3 ranks was overrun")
lintel_add_coll_test(ahead.udp par 3 ahead "nobody of 3 ranks was overrun" ${udp})
set(slots "no slot of [0-9]+ ranks was overwritten")
lintel_add_coll_test(slots.neighbours seq 3 slots ${slots})
lintel_add_coll_test(slots.mixed seq 4 slots ${slots} GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_coll_test(slots.apart par 3 slots ${slots} ${apart})
# 700 barriers of 4 places take two messages each, and their slots are used again without others.
lintel_add_coll_test(barriers seq 4 barriers "rank 0[^\n]* put: messages sent 14[0-9][0-9]," ${apart} PTL_STATS=1)
lintel_add_coll_test(late.neighbours seq 2 late "the late rank did not wait")
lintel_add_coll_test(late.mixed seq 4 late "the late rank did not wait" GASNET_SUPERNODE_MAXSIZE=2)
lintel_add_coll_test(late.udp seq 2 late "the late rank did not wait" ${udp})
# With more ranks than processors, waiting ranks sleep.
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
if(processors LESS_EQUAL 8)
  math(EXPR more_ranks "${processors} + 2")
  lintel_add_coll_test(idle seq ${more_ranks} idle "ranks have slept" ${udp})
endif()
