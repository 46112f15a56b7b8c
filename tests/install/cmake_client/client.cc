// A C++11 client of the installed library: sends a text to itself through a matching interface and
// waits for full events.
#include <portals.h>
#include <portals4_lintel.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

namespace {

void check(int code, const char* what) {
  if (code == PTL_OK) return;
  std::cerr << what << ": return code " << code << '\n';
  std::exit(1);
}

}  // namespace

int main() {
  char source[] = "through the installed library";
  char destination[sizeof source] = {};

  check(PtlInit(), "PtlInit");
  ptl_handle_ni_t ni;
  ptl_ni_limits_t limits;
  check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                  &limits, &ni),
        "PtlNIInit");
  ptl_process_t self;
  check(PtlGetId(ni, &self), "PtlGetId");
  ptl_handle_eq_t eq;
  check(PtlEQAlloc(ni, 16, &eq), "PtlEQAlloc");
  ptl_pt_index_t index;
  check(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &index), "PtlPTAlloc");

  ptl_me_t entry = ptl_me_t();
  entry.start = destination;
  entry.length = sizeof destination;
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options =
      PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;
  entry.match_id.phys.nid = PTL_NID_ANY;
  entry.match_id.phys.pid = PTL_PID_ANY;
  entry.match_bits = 42;
  ptl_handle_me_t me;
  check(PtlMEAppend(ni, index, &entry, PTL_PRIORITY_LIST, nullptr, &me), "PtlMEAppend");

  ptl_md_t memory = ptl_md_t();
  memory.start = source;
  memory.length = sizeof source;
  memory.eq_handle = PTL_EQ_NONE;
  memory.ct_handle = PTL_CT_NONE;
  ptl_handle_md_t md;
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  check(PtlPut(md, 0, sizeof source, PTL_NO_ACK_REQ, self, index, 42, 0, nullptr, 7), "PtlPut");

  ptl_event_t event;
  check(PtlEQWait(eq, &event), "PtlEQWait");
  if (event.type != PTL_EVENT_PUT || event.ni_fail_type != PTL_NI_OK || event.hdr_data != 7 ||
      std::strcmp(destination, source) != 0) {
    std::cerr << "the data did not arrive\n";
    return 1;
  }
  ptl_sr_value_t received = 0;
  check(PtlNIStatus(ni, PTL_SR_LINTEL_MESSAGES_RECEIVED + PTL_SR_LINTEL_PUT, &received),
        "PtlNIStatus");
  if (received != 1) {
    std::cerr << "PTL_SR_LINTEL_MESSAGES_RECEIVED: " << received << " puts instead of 1\n";
    return 1;
  }
  check(PtlMDRelease(md), "PtlMDRelease");
  check(PtlNIFini(ni), "PtlNIFini");
  PtlFini();
  return 0;
}
