# Headers, .mak and .pc files, programs. The .mak and .pc files contain absolute paths, since build
# systems read them as text. So they are written at installation, when the prefix is known.

file(GLOB gasnet_headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/include/*.h")
install(FILES ${gasnet_headers} "${gasnet_generated}/gasnet_config.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT gasnet_development)
install(FILES packaging/gasnet_core.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/portals4-conduit"
        COMPONENT gasnet_development)
install(
  FILES README.md docs/clients.md docs/tuning.md examples/tour.c
  DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/GASNet" COMPONENT gasnet_development)
configure_file(packaging/install_fragments.cmake.in
               "${CMAKE_CURRENT_BINARY_DIR}/install_fragments.cmake" @ONLY)
install(SCRIPT "${CMAKE_CURRENT_BINARY_DIR}/install_fragments.cmake" COMPONENT gasnet_development)
