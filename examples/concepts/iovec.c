/* iovec.c: one message gathered from three pieces of memory and scattered into two (3.10.2). The
 * length of a descriptor or entry with PTL_IOVEC counts its elements. */
#include <string.h>

#include "common.h"

enum { inbox_index = 4 };

int main(void) {
  ptl_process_t self;
  const ptl_handle_ni_t ni = open_interface(PTL_NI_NO_MATCHING, &self);
  const ptl_handle_ct_t arrived = allocate_counter(ni);
  ptl_pt_index_t index;
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, inbox_index, &index), "PtlPTAlloc");

  char head[6], tail[16];
  ptl_iovec_t into[] = {{head, sizeof head}, {tail, sizeof tail}};
  const ptl_le_t entry = {.start = into,
                          .length = sizeof into / sizeof into[0],
                          .ct_handle = arrived,
                          .uid = PTL_UID_ANY,
                          .options = PTL_LE_OP_PUT | PTL_IOVEC | PTL_LE_EVENT_CT_COMM};
  ptl_handle_le_t le;
  check(PtlLEAppend(ni, inbox_index, &entry, PTL_PRIORITY_LIST, NULL, &le), "PtlLEAppend");

  char one[] = "gather", two[] = "and", three[] = "scatter";
  ptl_iovec_t from[] = {{one, 6}, {two, 3}, {three, 8}};
  const ptl_md_t memory = {.start = from,
                           .length = sizeof from / sizeof from[0],
                           .options = PTL_IOVEC,
                           .eq_handle = PTL_EQ_NONE,
                           .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t md;
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  check(PtlPut(md, 0, 17, PTL_NO_ACK_REQ, self, inbox_index, 0, 0, NULL, 0), "PtlPut");
  await_count(arrived, 1);
  printf("%.6s|%s\n", head, tail);
  expect(memcmp(head, "gather", 6) == 0 && strcmp(tail, "andscatter") == 0, "the bytes in order");
  PtlFini();
  return EXIT_SUCCESS;
}
