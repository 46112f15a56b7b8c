/* devices.h: segments in memory of the first CUDA device, a stand-in, for programs that compare
 * transfers with a model. Not used with GASNET_SEGMENT_EVERYTHING.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_TESTS_GASNET_DEVICES_H
#define LINTEL_TESTS_GASNET_DEVICES_H

#include <gasnet_mk.h>
#include <portals4_lintel.h>
#include <string.h>

#include "checks.h"

/* Which memory is that of devices: the peer's, or that of both sides. */
static enum { kNoDevice, kAtPeers, kAtBoth } devices;
static gex_EP_t device_endpoint; /* its index is 1 everywhere */
static char* device_segment;

/* argument: "peer" or "both". Each rank gets a segment of that length. */
static inline void use_devices(const char* argument, size_t bytes) {
  gex_MK_t kind;
  gex_MK_Create_args_t args;
  gex_Segment_t of_device;
  CHECK(!strcmp(argument, "peer") || !strcmp(argument, "both"));
  devices = !strcmp(argument, "both") ? kAtBoth : kAtPeers;
  memset(&args, 0, sizeof args);
  args.gex_class = GEX_MK_CLASS_CUDA_UVA;
  CHECK(gex_MK_Create(&kind, client, &args, 0) == GASNET_OK);
  CHECK(gex_Segment_Create(&of_device, client, NULL, bytes, kind, 0) == GASNET_OK);
  CHECK(gex_EP_Create(&device_endpoint, client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
  CHECK(gex_EP_BindSegment(device_endpoint, of_device, 0) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(team, &device_endpoint, 1, 0) == GASNET_OK);
  device_segment = (char*)gex_Segment_QueryAddr(of_device);
}

/* Of this rank's memory of the host, or of its device, and the devices of the others. */
static inline gex_TM_t to_devices(int from_device) {
  return gex_TM_Pair(from_device ? device_endpoint : endpoint, 1);
}

static inline void copy_of_device(void* to, const void* from, size_t bytes) {
  CHECK(PtlLintelDeviceCopy(to, from, bytes) == PTL_OK);
}
static inline void clear_device(char* start, size_t bytes) {
  void* const zeros = calloc(bytes, 1);
  copy_of_device(start, zeros, bytes);
  free(zeros);
}

#endif /* LINTEL_TESTS_GASNET_DEVICES_H */
