/* network.cc: opening the interface, allocating its objects. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "network/network.h"

#include <portals4_lintel.h>

#include "network/poll.h"
#include "tools/headers.h"

namespace lintel::gasnet {
namespace {

void check_job(int code, const char* call) {
  if (code != PTL_OK)
    gasnett_fatalerror_nopos("%s returned %s: %s", call, PtlToStr(code, PTL_STR_ERROR),
                             PtlJobError());
}

}  // namespace

Network& network() {
  static Network& instance = *new Network;
  return instance;
}

void check(int code, const char* call) {
  if (code == PTL_OK) return;
  stop_if_process_ends();
  gasnett_fatalerror("%s returned %s", call, PtlToStr(code, PTL_STR_ERROR));
}

void Network::open() {
  check_job(PtlJobInit(), "PtlJobInit");
  check_job(PtlInit(), "PtlInit");
  check_job(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, nullptr,
                      &limits_, &interface_),
            "PtlNIInit");
  const int code = PtlJobPublish(interface_);
  has_map_ = code == PTL_ARG_INVALID;  // another library of this process opened it before
  if (!has_map_) check_job(code, "PtlJobPublish");
  if (limits_.max_pt_index < static_cast<int>(PortalIndex::kCollectives))
    gasnett_fatalerror(
        "the Portals interface has entries up to %d only, %u are needed: another "
        "library opened it first with such a limit",
        limits_.max_pt_index, number_of(PortalIndex::kCollectives));
  is_open_ = true;
}

void Network::meet() {
  if (has_map_)
    check_job(PtlJobBarrier(), "PtlJobBarrier");
  else
    check_job(PtlJobSetMap(interface_), "PtlJobSetMap");
}

void Network::allocate(PortalIndex index, unsigned int options, ptl_handle_eq_t queue) {
  ptl_pt_index_t actual = 0;
  const int code = PtlPTAlloc(interface_, options, queue, number_of(index), &actual);
  if (code == PTL_PT_IN_USE)
    gasnett_fatalerror("portal table entry %u is in use by another library of this process",
                       number_of(index));
  check(code, "PtlPTAlloc");
}

ptl_handle_ct_t Network::new_counter() {
  ptl_handle_ct_t counter;
  check(PtlCTAlloc(interface_, &counter), "PtlCTAlloc");
  return counter;
}

ptl_handle_eq_t Network::new_queue(ptl_size_t events) {
  ptl_handle_eq_t queue;
  check(PtlEQAlloc(interface_, events, &queue), "PtlEQAlloc");
  return queue;
}

ptl_handle_md_t Network::bind(const ptl_md_t& md) {
  ptl_handle_md_t handle;
  check(PtlMDBind(interface_, &md, &handle), "PtlMDBind");
  return handle;
}

ptl_handle_me_t Network::append(PortalIndex index, const ptl_me_t& entry, void* user_ptr) {
  ptl_handle_me_t handle;
  check(PtlMEAppend(interface_, number_of(index), &entry, PTL_PRIORITY_LIST, user_ptr, &handle),
        "PtlMEAppend");
  return handle;
}

}  // namespace lintel::gasnet
