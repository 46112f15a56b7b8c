/* atomics.c: PtlAtomic adds, PtlFetchAtomic also returns the value from before, PtlSwap with
 * PTL_CSWAP takes a lock (3.15.4 to 3.15.7). */
#include "common.h"

enum { counters_index = 4 };

int main(void) {
  ptl_process_t self;
  const ptl_handle_ni_t ni = open_interface(PTL_NI_NO_MATCHING, &self);
  int64_t shared[2] = {40, 0}; /* a number and a lock, for any process that may reach them */
  const ptl_le_t entry = {.start = shared,
                          .length = sizeof shared,
                          .ct_handle = PTL_CT_NONE,
                          .uid = PTL_UID_ANY,
                          .options = PTL_LE_OP_PUT | PTL_LE_OP_GET};
  ptl_handle_le_t le;
  ptl_pt_index_t index;
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, counters_index, &index), "PtlPTAlloc");
  check(PtlLEAppend(ni, counters_index, &entry, PTL_PRIORITY_LIST, NULL, &le), "PtlLEAppend");

  int64_t operand = 1, before = 0;
  ptl_md_t memory = {.start = &operand,
                     .length = sizeof operand,
                     .options = PTL_MD_EVENT_CT_ACK,
                     .eq_handle = PTL_EQ_NONE,
                     .ct_handle = allocate_counter(ni)};
  ptl_handle_md_t put, get;
  check(PtlMDBind(ni, &memory, &put), "PtlMDBind");
  const ptl_handle_ct_t acknowledged = memory.ct_handle;
  memory.start = &before;
  memory.options = PTL_MD_EVENT_CT_REPLY;
  memory.ct_handle = allocate_counter(ni);
  check(PtlMDBind(ni, &memory, &get), "PtlMDBind");

  check(PtlAtomic(put, 0, 8, PTL_CT_ACK_REQ, self, counters_index, 0, 0, NULL, 0, PTL_SUM,
                  PTL_INT64_T),
        "PtlAtomic");
  await_count(acknowledged, 1);
  check(
      PtlFetchAtomic(get, 0, put, 0, 8, self, counters_index, 0, 0, NULL, 0, PTL_SUM, PTL_INT64_T),
      "PtlFetchAtomic");
  await_count(memory.ct_handle, 1);
  printf("was %d, is %d\n", (int)before, (int)shared[0]);
  expect(before == 41 && shared[0] == 42, "each adds one");

  /* Sets the lock to 1 if it is 0. A process that reads 0 has it. */
  const int64_t free_lock = 0;
  for (int64_t attempt = 0; attempt < 2; ++attempt) {
    check(PtlSwap(get, 0, put, 0, 8, self, counters_index, 0, sizeof shared[0], NULL, 0, &free_lock,
                  PTL_CSWAP, PTL_INT64_T),
          "PtlSwap");
    await_count(memory.ct_handle, (ptl_size_t)(2 + attempt));
    printf("attempt %d: %s\n", (int)attempt, before == 0 ? "locked" : "another process has it");
    expect(before == attempt, "only the first attempt gets the lock");
  }
  PtlFini();
  return EXIT_SUCCESS;
}
