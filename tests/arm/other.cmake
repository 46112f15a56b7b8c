# Toolchain file for a processor that only has the name LINTEL_OTHER_PROCESSOR.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "${LINTEL_OTHER_PROCESSOR}")
