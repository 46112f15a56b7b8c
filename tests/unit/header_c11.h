/* The interface between header_c11.c, compiled as C11, and header_test.cc, compiled as C++. */
#pragma once

#include <stddef.h>

struct header_layout {
  size_t le_bytes, me_bytes, md_bytes, event_bytes, limits_bytes, process_bytes;
  size_t event_type_offset, event_datatype_offset, features_offset;
};

#ifdef __cplusplus
extern "C"
#endif
    /* NULL, or the group of constants that does not work in C. Fills in the layout in C. */
    const char*
    header_c11_failure(struct header_layout* layout);
