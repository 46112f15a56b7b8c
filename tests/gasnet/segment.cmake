# Segments of the client's memory, and all memory as the segment. Label: gasnet.

foreach(mode seq par)
  add_executable(gasnet_segment_probe_${mode} "${CMAKE_CURRENT_LIST_DIR}/segment_probe.c")
  target_link_libraries(gasnet_segment_probe_${mode} PRIVATE gasnet-portals4-${mode} lintel_options)
endforeach()
add_executable(gasnet_everything_probe "${CMAKE_CURRENT_LIST_DIR}/segment_probe.c")
target_link_libraries(gasnet_everything_probe PRIVATE gasnet-portals4-seq lintel_options)
target_compile_definitions(gasnet_everything_probe PRIVATE GASNET_SEGMENT_EVERYTHING)

# lintel_add_segment_test(<name> <program> <ranks> <variable=value>...)
function(lintel_add_segment_test name program ranks)
  add_test(NAME gasnet.Segments.${name} COMMAND gasnetrun_portals4 -spawner=fork -n ${ranks}
                                                $<TARGET_FILE:${program}>)
  set_tests_properties(
    gasnet.Segments.${name}
    PROPERTIES LABELS gasnet TIMEOUT 240 PROCESSORS 2 ENVIRONMENT "PTL_DEVICE_MEMORY=off;${ARGN}"
               PASS_REGULAR_EXPRESSION "are good" FAIL_REGULAR_EXPRESSION "its process is gone")
endfunction()

set(apart GASNET_SUPERNODE_MAXSIZE=1)
set(udp PTL_TRANSPORT=udp ${apart})
lintel_add_segment_test(one gasnet_segment_probe_seq 1)
lintel_add_segment_test(neighbours gasnet_segment_probe_seq 4)
lintel_add_segment_test(apart gasnet_segment_probe_par 3 ${apart})
lintel_add_segment_test(udp gasnet_segment_probe_seq 3 ${udp})
# Drivers without a device.
lintel_add_segment_test(no_devices gasnet_segment_probe_seq 2 PTL_DEVICE_MEMORY=auto FAKE_DEVICE_COUNT=0
                        LD_LIBRARY_PATH=${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/fake_drivers)
lintel_add_segment_test(everything gasnet_everything_probe 3)
lintel_add_segment_test(everything.apart gasnet_everything_probe 2 ${apart})
lintel_add_segment_test(everything.udp gasnet_everything_probe 3 ${udp})

# Segments in memory of devices, over the stand-ins for their drivers.
add_executable(gasnet_device_probe "${CMAKE_CURRENT_LIST_DIR}/device_probe.cc"
                                   "${PROJECT_SOURCE_DIR}/tools/common/accelerator.cc")
target_include_directories(gasnet_device_probe PRIVATE "${PROJECT_SOURCE_DIR}/tools" "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(gasnet_device_probe PRIVATE gasnet-portals4-seq lintel_options)
add_dependencies(gasnet_device_probe fake_drivers)
function(lintel_add_device_test name driver ranks)
  add_test(NAME gasnet.Devices.${name}
           COMMAND gasnetrun_portals4 -spawner=fork -n ${ranks} $<TARGET_FILE:gasnet_device_probe> ${driver})
  set_tests_properties(
    gasnet.Devices.${name}
    PROPERTIES LABELS gasnet TIMEOUT 240 PROCESSORS 2 PASS_REGULAR_EXPRESSION "are good"
               FAIL_REGULAR_EXPRESSION "its process is gone"
               ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/fake_drivers;${ARGN}")
endfunction()
foreach(driver cuda hip ze)
  lintel_add_device_test(${driver} ${driver} 3)
endforeach()
lintel_add_device_test(apart cuda 2 ${apart})
lintel_add_device_test(udp cuda 2 ${udp})

# The models of puts and gets, and of pieces, with memory of devices at the peer, or at both sides.
# Not exported: through memory of the host.
function(lintel_add_device_model name program ranks arguments)
  separate_arguments(arguments)
  add_test(NAME gasnet.Devices.${name} COMMAND gasnetrun_portals4 -spawner=fork -n ${ranks}
                                               $<TARGET_FILE:gasnet_${program}> ${arguments})
  set_tests_properties(
    gasnet.Devices.${name}
    PROPERTIES LABELS gasnet TIMEOUT 240 PROCESSORS 2 FAIL_REGULAR_EXPRESSION "its process is gone"
               ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/fake_drivers;${ARGN}")
endfunction()
foreach(side peer both)
  lintel_add_device_model(Rma.${side} rma_probe_seq 3 "1 40 ${side}")
  lintel_add_device_model(Rma.${side}.udp rma_probe_par 2 "2 20 ${side}" ${udp})
  lintel_add_device_model(Vis.${side} vis_probe_seq 3 "1 40 ${side}")
  lintel_add_device_model(Vis.${side}.udp vis_probe_par 2 "2 20 ${side}" ${udp})
endforeach()
lintel_add_device_model(Rma.one rma_probe_seq 1 "1 40 both")
lintel_add_device_model(Rma.buffers rma_probe_par 2 "2 20 both" FAKE_DEVICE_NO_EXPORT=1)
