# Writes module_version.h: the version of the library, and what its modules must have in common with
# it. That is the content of all internal headers, so builds of the same sources are the same.
# Needs SOURCE (directory of the project), VERSION, OPTIONS (that change layouts) and OUTPUT.
file(GLOB_RECURSE headers RELATIVE "${SOURCE}" "${SOURCE}/include/*.h" "${SOURCE}/pmix/*.h"
     "${SOURCE}/src/*.h")
list(SORT headers)
set(all "${OPTIONS}")
foreach(header IN LISTS headers)
  file(SHA256 "${SOURCE}/${header}" content)
  string(APPEND all "\n${header} ${content}")
endforeach()
string(SHA256 build "${all}")
string(SUBSTRING "${build}" 0 16 build)
set(text "#pragma once\n#define LINTEL_MODULE_VERSION \"${VERSION} build ${build}\"\n")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${OUTPUT}" "${text}")
endif()
