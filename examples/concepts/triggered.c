/* triggered.c: an operation that starts when a counter reaches a threshold, without a call of
 * the application (3.16). Three contributions are added up in memory; the last one sends the sum
 * on. */
#include "common.h"

enum { sum_index = 4, result_index = 5, contributions = 3 };

static void expose(ptl_handle_ni_t ni, ptl_pt_index_t index, int64_t* value,
                   ptl_handle_ct_t counter) {
  const ptl_le_t entry = {
      .start = value,
      .length = sizeof *value,
      .ct_handle = counter,
      .uid = PTL_UID_ANY,
      .options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM}; /* counts messages that arrived */
  ptl_handle_le_t handle;
  ptl_pt_index_t given;
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, index, &given), "PtlPTAlloc");
  check(PtlLEAppend(ni, index, &entry, PTL_PRIORITY_LIST, NULL, &handle), "PtlLEAppend");
}

static ptl_handle_md_t bind_value(ptl_handle_ni_t ni, int64_t* value) {
  const ptl_md_t memory = {
      .start = value, .length = sizeof *value, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t md;
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  return md;
}

int main(void) {
  ptl_process_t self;
  const ptl_handle_ni_t ni = open_interface(PTL_NI_NO_MATCHING, &self);
  const ptl_handle_ct_t arrived = allocate_counter(ni), finished = allocate_counter(ni);
  int64_t sum = 0, result = 0;
  expose(ni, sum_index, &sum, arrived);
  expose(ni, result_index, &result, finished);

  /* Armed before the messages come, and started by the last of them. */
  const ptl_handle_md_t sum_md = bind_value(ni, &sum);
  check(PtlTriggeredPut(sum_md, 0, sizeof sum, PTL_NO_ACK_REQ, self, result_index, 0, 0, NULL, 0,
                        arrived, contributions),
        "PtlTriggeredPut");
  int64_t part = 14;
  const ptl_handle_md_t part_md = bind_value(ni, &part);
  for (int i = 0; i < contributions; ++i)
    check(PtlAtomic(part_md, 0, sizeof part, PTL_NO_ACK_REQ, self, sum_index, 0, 0, NULL, 0,
                    PTL_SUM, PTL_INT64_T),
          "PtlAtomic");
  await_count(finished, 1);
  printf("%d contributions of %d: %d\n", contributions, (int)part, (int)result);
  expect(result == contributions * part, "the sum of all");
  PtlFini();
  return EXIT_SUCCESS;
}
