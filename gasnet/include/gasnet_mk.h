/* gasnet_mk.h: memory kinds: memory of the host, and of devices of CUDA, HIP and Level Zero.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_MK_H
#define GASNET_MK_H

#include <gasnetex.h>

typedef enum {
  GEX_MK_CLASS_HOST = 0,
  GEX_MK_CLASS_CUDA_UVA = 1,
  GEX_MK_CLASS_HIP = 2,
  GEX_MK_CLASS_ZE = 3
} gex_MK_Class_t;

typedef struct {
  uint64_t gex_flags; /* 0 */
  gex_MK_Class_t gex_class;
  union {
    struct {
      int gex_CUdevice;
    } gex_class_cuda_uva;
    struct {
      int gex_hipDevice;
    } gex_class_hip;
    struct {
      void* gex_zeDevice;
      void* gex_zeContext;
      uint32_t gex_zeMemoryOrdinal;
    } gex_class_ze;
  } gex_args;
} gex_MK_Create_args_t;

GASNETT_BEGIN_EXTERNC
/** The kind of a device: for gex_Segment_Create. Its driver is loaded if the program has not done
 * so.
 * @return GASNET_OK; GASNET_ERR_BAD_ARG for flags and devices that the driver does not have;
 *       GASNET_ERR_RESOURCE if there is no driver, or PTL_DEVICE_MEMORY excludes it. */
extern int gex_MK_Create(gex_MK_t* memkind_p, gex_Client_t client, const gex_MK_Create_args_t* args,
                         gex_Flags_t flags);
/** Segments of the kind stay usable. */
extern void gex_MK_Destroy(gex_MK_t memkind, gex_Flags_t flags);
GASNETT_END_EXTERNC

#endif /* GASNET_MK_H */
