/* flow_control.c: a target that has no room disables its portal table entry, so that no message
 * is lost unnoticed; it makes room, enables the entry, and the initiator sends again (3.7,
 * 3.13.2). */
#include <string.h>

#include "common.h"

enum { inbox_index = 4 };

static void append(ptl_handle_ni_t ni, uint64_t* slot) {
  const ptl_le_t entry = {.start = slot,
                          .length = sizeof *slot,
                          .ct_handle = PTL_CT_NONE,
                          .uid = PTL_UID_ANY,
                          .options = PTL_LE_OP_PUT | PTL_LE_USE_ONCE | PTL_LE_EVENT_LINK_DISABLE |
                                     PTL_LE_EVENT_UNLINK_DISABLE};
  ptl_handle_le_t handle;
  check(PtlLEAppend(ni, inbox_index, &entry, PTL_PRIORITY_LIST, NULL, &handle), "PtlLEAppend");
}

int main(void) {
  ptl_process_t self;
  const ptl_handle_ni_t ni = open_interface(PTL_NI_NO_MATCHING, &self);
  const ptl_handle_eq_t arrivals = allocate_queue(ni), sent = allocate_queue(ni);
  uint64_t slots[2] = {0, 0}, value = 42;
  ptl_pt_index_t index;
  check(PtlPTAlloc(ni, PTL_PT_FLOWCTRL, arrivals, inbox_index, &index), "PtlPTAlloc");
  const ptl_md_t memory = {.start = &value,
                           .length = sizeof value,
                           .options = PTL_MD_EVENT_SEND_DISABLE,
                           .eq_handle = sent,
                           .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t md;
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");

  printf("room for one message, and two come\n");
  append(ni, &slots[0]);
  for (int i = 0; i < 2; ++i)
    check(PtlPut(md, 0, sizeof value, PTL_ACK_REQ, self, inbox_index, 0, 0, NULL, 0), "PtlPut");
  /* Acknowledgments come in any order. */
  int delivered = 0, refused = 0;
  for (int i = 0; i < 2; ++i) {
    const ptl_ni_fail_t fail = await_event(sent, PTL_EVENT_ACK).ni_fail_type;
    delivered += fail == PTL_NI_OK;
    refused += fail == PTL_NI_PT_DISABLED;
  }
  expect(delivered == 1 && refused == 1, "one is delivered, one is refused");
  await_event(arrivals, PTL_EVENT_PUT);
  await_event(arrivals, PTL_EVENT_PT_DISABLED);

  printf("room, and once more\n");
  append(ni, &slots[1]);
  check(PtlPTEnable(ni, inbox_index), "PtlPTEnable");
  check(PtlPut(md, 0, sizeof value, PTL_ACK_REQ, self, inbox_index, 0, 0, NULL, 0), "PtlPut");
  expect(await_event(sent, PTL_EVENT_ACK).ni_fail_type == PTL_NI_OK, "now it is delivered");
  await_event(arrivals, PTL_EVENT_PUT);
  expect(slots[0] == value && slots[1] == value, "both slots have the value");
  PtlFini();
  return EXIT_SUCCESS;
}
