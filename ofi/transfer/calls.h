// Calls of Portals that are made now, or handed to a Deferral, which has them carried out at a
// threshold. Message path.
#pragma once

#include <portals4.h>

#include "endpoint/deferral.h"

namespace lintel::ofi {

struct PutCall {
  ptl_handle_md_t descriptor;
  ptl_size_t local;
  ptl_size_t length;
  ptl_ack_req_t acknowledgment;
  ptl_process_t target;
  ptl_pt_index_t portal;
  ptl_match_bits_t bits;
  ptl_size_t remote;
  void* owner;
  ptl_hdr_data_t header;
};

struct GetCall {
  ptl_handle_md_t descriptor;
  ptl_size_t local;
  ptl_size_t length;
  ptl_process_t target;
  ptl_pt_index_t portal;
  ptl_match_bits_t bits;
  ptl_size_t remote;
  void* owner;
};

inline int make(const PutCall& put, Deferral* deferral) {
  if (deferral == nullptr) [[likely]]
    return PtlPut(put.descriptor, put.local, put.length, put.acknowledgment, put.target, put.portal,
                  put.bits, put.remote, put.owner, put.header);
  deferral->add([put](ptl_handle_ct_t counter, ptl_size_t threshold) {
    return PtlTriggeredPut(put.descriptor, put.local, put.length, put.acknowledgment, put.target,
                           put.portal, put.bits, put.remote, put.owner, put.header, counter,
                           threshold);
  });
  return PTL_OK;
}

inline int make(const GetCall& get, Deferral* deferral) {
  if (deferral == nullptr) [[likely]]
    return PtlGet(get.descriptor, get.local, get.length, get.target, get.portal, get.bits,
                  get.remote, get.owner);
  deferral->add([get](ptl_handle_ct_t counter, ptl_size_t threshold) {
    return PtlTriggeredGet(get.descriptor, get.local, get.length, get.target, get.portal, get.bits,
                           get.remote, get.owner, counter, threshold);
  });
  return PTL_OK;
}

// The result of Deferral::start() as a code of libfabric, if nothing of it has begun.
[[nodiscard]] inline int error_of_start(int code) noexcept {
  return code == PTL_NO_SPACE ? -FI_EAGAIN : failed(FI_LOG_EP_DATA, "PtlTriggered...", code);
}

}  // namespace lintel::ofi
