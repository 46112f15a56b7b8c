/* unexpected.c: a message that comes before its receive was appended. It matches an entry of the
 * overflow list, and its header waits on the unexpected list until an entry of the priority list
 * claims it (3.12, 3.13.2). */
#include <string.h>

#include "common.h"

enum { receives = 3, early = 7, late = 8 };

static void append(ptl_handle_ni_t ni, ptl_list_t list, void* start, ptl_size_t length,
                   ptl_match_bits_t bits, ptl_match_bits_t ignore, unsigned int more_options) {
  const ptl_me_t entry = {.start = start,
                          .length = length,
                          .ct_handle = PTL_CT_NONE,
                          .uid = PTL_UID_ANY,
                          .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE |
                                     PTL_ME_EVENT_UNLINK_DISABLE | more_options,
                          .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                          .match_bits = bits,
                          .ignore_bits = ignore};
  ptl_handle_me_t handle;
  check(PtlMEAppend(ni, receives, &entry, list, NULL, &handle), "PtlMEAppend");
}

int main(void) {
  ptl_process_t self;
  const ptl_handle_ni_t ni = open_interface(PTL_NI_MATCHING, &self);
  const ptl_handle_eq_t arrivals = allocate_queue(ni), sent = allocate_queue(ni);
  ptl_pt_index_t index;
  check(PtlPTAlloc(ni, 0, arrivals, receives, &index), "PtlPTAlloc");

  /* Takes messages without an entry, one behind the other (PTL_ME_MANAGE_LOCAL). */
  static char overflow[4096];
  append(ni, PTL_OVERFLOW_LIST, overflow, sizeof overflow, 0, ~(ptl_match_bits_t)0,
         PTL_ME_MANAGE_LOCAL);

  char text[] = "here before you asked";
  const ptl_md_t memory = {
      .start = text, .length = sizeof text, .eq_handle = sent, .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t md;
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  printf("a message that nobody expects\n");
  check(PtlPut(md, 0, sizeof text, PTL_ACK_REQ, self, receives, early, 0, NULL, 0), "PtlPut");
  await_event(sent, PTL_EVENT_ACK);

  /* The append finds the header. Its event has the place of the data, which have not moved. */
  static char inbox[64];
  printf("its receive\n");
  append(ni, PTL_PRIORITY_LIST, inbox, sizeof inbox, early, 0, PTL_ME_USE_ONCE);
  const ptl_event_t claimed = await_event(arrivals, PTL_EVENT_PUT_OVERFLOW);
  expect(claimed.start == overflow, "the data lie in the overflow buffer");
  memcpy(inbox, claimed.start, claimed.mlength);
  expect(strcmp(inbox, text) == 0, "they are those that were sent");

  printf("a message that is expected\n");
  append(ni, PTL_PRIORITY_LIST, inbox, sizeof inbox, late, 0, PTL_ME_USE_ONCE);
  check(PtlPut(md, 0, sizeof text, PTL_ACK_REQ, self, receives, late, 0, NULL, 0), "PtlPut");
  ptl_event_t direct;
  do {
    direct = await_event(arrivals, PTL_EVENT_PUT);
  } while (direct.ptl_list != PTL_PRIORITY_LIST); /* the first put has such an event as well */
  expect(direct.start == inbox, "the data are where the entry says");
  PtlFini();
  return EXIT_SUCCESS;
}
