# Active messages between the ranks of a job, over shared memory and over UDP. Label: gasnet.

find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "Python 3 not found: the tests of active messages are not run")
  return()
endif()

foreach(mode seq par)
  add_executable(gasnet_am_probe_${mode} "${CMAKE_CURRENT_LIST_DIR}/am_probe.c")
  target_link_libraries(gasnet_am_probe_${mode} PRIVATE gasnet-portals4-${mode} portals_runtime portals lintel_options)
endforeach()

# lintel_add_am_test(<name> <mode> <case> <ranks> <variable=value>...)
function(lintel_add_am_test name mode case ranks)
  add_test(NAME gasnet.Messages.${name}
           COMMAND Python3::Interpreter -B "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/run_am_test.py"
                   $<TARGET_FILE:gasnet_am_probe_${mode}> ${case} ${ranks} ${ARGN})
  set_tests_properties(gasnet.Messages.${name} PROPERTIES LABELS gasnet TIMEOUT 240 PROCESSORS 2)
endfunction()

# A queue of four events and one block for two messages: most requests are refused at first.
set(tiny refusals=1 GASNET_AM_CREDITS=64 GASNET_AM_REQUEST_EVENTS=4 GASNET_AM_REQUEST_BLOCKS=1
         GASNET_AM_BLOCK_SIZE=16512)
set(apart GASNET_SUPERNODE_MAXSIZE=1)
set(udp PTL_TRANSPORT=udp ${apart})
lintel_add_am_test(neighbours.arity seq arity 2)
lintel_add_am_test(neighbours.negotiated seq negotiated 2)
lintel_add_am_test(neighbours.flood seq flood 4 ${tiny})
lintel_add_am_test(apart.arity par arity 2 ${apart})
lintel_add_am_test(apart.negotiated par negotiated 2 ${apart})
lintel_add_am_test(apart.flood seq flood 4 ${apart})
lintel_add_am_test(apart.oneCredit seq flood 3 AM_PROBE_FLOOD=500 ${apart} GASNET_AM_CREDITS=1)
lintel_add_am_test(apart.threads par threads 3 ${apart} ${tiny})
lintel_add_am_test(udp.arity seq arity 2 ${udp})
lintel_add_am_test(udp.negotiated seq negotiated 2 ${udp})
lintel_add_am_test(udp.flood seq flood 3 ${udp} ${tiny})
# More ranks than processors.
lintel_add_am_test(neighbours.storm seq flood 16 AM_PROBE_FLOOD=250 ${tiny})
lintel_add_am_test(apart.storm par flood 12 AM_PROBE_FLOOD=250 ${apart} ${tiny})
lintel_add_am_test(udp.storm seq flood 9 AM_PROBE_FLOOD=250 ${udp} ${tiny})
# Header and data of a Long are lost, duplicated and reordered.
lintel_add_am_test(
  udp.faults seq flood 3 AM_PROBE_FLOOD=400 ${udp} PTL_FAULTS=drop=0.02,dup=0.02,reorder=0.05,corrupt=0.002,seed=7)
foreach(where neighbours apart udp)
  lintel_add_am_test(${where}.stopped seq stopped 2 ${${where}} GASNET_AM_CREDITS=600)
endforeach()
lintel_add_am_test(immediate seq immediate 2 GASNET_AM_CREDITS=8)
lintel_add_am_test(udp.immediate par immediate 2 ${udp} GASNET_AM_CREDITS=8)

# The guarantees of the queries, and messages by teams and pairs.
foreach(mode seq par)
  add_executable(gasnet_am_limits_probe_${mode} "${CMAKE_CURRENT_LIST_DIR}/am_limits_probe.c")
  target_link_libraries(gasnet_am_limits_probe_${mode} PRIVATE gasnet-portals4-${mode} lintel_options)
  add_test(NAME gasnet.Messages.limits.${mode} COMMAND gasnetrun_portals4 -spawner=fork -n 3
                                                       $<TARGET_FILE:gasnet_am_limits_probe_${mode}>)
  set_tests_properties(
    gasnet.Messages.limits.${mode} PROPERTIES LABELS gasnet TIMEOUT 60 PROCESSORS 2 PASS_REGULAR_EXPRESSION
                                              "are good" FAIL_REGULAR_EXPRESSION "not so")
endforeach()
set_property(TEST gasnet.Messages.limits.par PROPERTY ENVIRONMENT GASNET_SUPERNODE_MAXSIZE=1)

# Where a ring is always full, or credits are late, messages only take longer.
add_executable(gasnet_am_parts_test "${CMAKE_CURRENT_LIST_DIR}/am_parts_test.cc")
target_include_directories(gasnet_am_parts_test PRIVATE "${PROJECT_SOURCE_DIR}/gasnet" "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(gasnet_am_parts_test PRIVATE gasnet-portals4-seq-static lintel_options)
add_test(NAME gasnet.Messages.parts COMMAND gasnet_am_parts_test)
set_tests_properties(gasnet.Messages.parts PROPERTIES LABELS gasnet TIMEOUT 60)

# The target reads nothing outside of the message.
add_test(NAME gasnet.Messages.hostile COMMAND gasnetrun_portals4 -spawner=fork -n 2
                                              $<TARGET_FILE:gasnet_am_probe_seq> hostile)
set_tests_properties(
  gasnet.Messages.hostile PROPERTIES LABELS gasnet TIMEOUT 60 PROCESSORS 2 PASS_REGULAR_EXPRESSION
                                     "rank 1 has sent a message that cannot be read")

# A short selection for the sanitizers.
set_property(
  TEST gasnet.Messages.neighbours.negotiated gasnet.Messages.apart.threads gasnet.Messages.udp.flood
       gasnet.Messages.immediate gasnet.Messages.hostile
  APPEND
  PROPERTY LABELS sanitized)
