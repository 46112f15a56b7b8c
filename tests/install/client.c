/* A C11 client of the installed library: sends eight bytes to itself and waits for a count. */
#include <portals4.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code, const char* what) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: return code %d\n", what, code);
  exit(1);
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_handle_ct_t sent, arrived;
  ptl_handle_md_t md;
  ptl_handle_le_t le;
  ptl_pt_index_t index;
  ptl_process_t self;
  ptl_ct_event_t count;
  uint64_t source = 0x0123456789abcdef, destination = 0;

  check(PtlInit(), "PtlInit");
  check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                  &ni),
        "PtlNIInit");
  check(PtlGetPhysId(ni, &self), "PtlGetPhysId");
  check(PtlCTAlloc(ni, &sent), "PtlCTAlloc");
  check(PtlCTAlloc(ni, &arrived), "PtlCTAlloc");
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index), "PtlPTAlloc");

  const ptl_le_t entry = {.start = &destination,
                          .length = sizeof destination,
                          .ct_handle = arrived,
                          .uid = PTL_UID_ANY,
                          .options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
  check(PtlLEAppend(ni, index, &entry, PTL_PRIORITY_LIST, NULL, &le), "PtlLEAppend");
  const ptl_md_t memory = {.start = &source,
                           .length = sizeof source,
                           .options = PTL_MD_EVENT_CT_ACK,
                           .eq_handle = PTL_EQ_NONE,
                           .ct_handle = sent};
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  check(PtlPut(md, 0, sizeof source, PTL_CT_ACK_REQ, self, index, 0, 0, NULL, 0), "PtlPut");
  check(PtlCTWait(arrived, 1, &count), "PtlCTWait at the target");
  check(PtlCTWait(sent, 1, &count), "PtlCTWait at the initiator");
  if (count.failure != 0 || destination != source) {
    fprintf(stderr, "the data did not arrive\n");
    return 1;
  }

  check(PtlMDRelease(md), "PtlMDRelease");
  check(PtlLEUnlink(le), "PtlLEUnlink");
  check(PtlPTFree(ni, index), "PtlPTFree");
  check(PtlCTFree(sent), "PtlCTFree");
  check(PtlCTFree(arrived), "PtlCTFree");
  check(PtlNIFini(ni), "PtlNIFini");
  PtlFini();
  return 0;
}
