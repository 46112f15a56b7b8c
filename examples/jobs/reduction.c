/* reduction.c: sums over all ranks, and everybody gets them, by a binary tree that runs by itself.
 * When a rank's counter says that its children and it have contributed, a triggered atomic adds the
 * sum to the parent's; when the root is complete, triggered puts hand the result down. The program
 * sets all rounds up, contributes, and waits. Alone, or under mpirun or srun --mpi=pmix. */
#include <portals4_runtime.h>
#include <stdint.h>
#include <stdio.h>

enum { rounds = 32, sums = 7, results = 8 };

static int64_t sum[rounds], result[rounds], own[rounds];

static void check(int code, const char* call) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: return code %d\n", call, code);
  PtlJobAbort(1, "a call failed");
}

/* Lets others write to one number, and counts when they have. */
static ptl_handle_ct_t expose(ptl_handle_ni_t ni, ptl_pt_index_t index, int64_t* number,
                              unsigned round) {
  ptl_me_t entry = {.start = number,
                    .length = sizeof *number,
                    .uid = PTL_UID_ANY,
                    .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                    .match_id = {.rank = PTL_RANK_ANY},
                    .match_bits = round};
  ptl_handle_me_t me;
  check(PtlCTAlloc(ni, &entry.ct_handle), "PtlCTAlloc");
  check(PtlMEAppend(ni, index, &entry, PTL_PRIORITY_LIST, NULL, &me), "PtlMEAppend");
  return entry.ct_handle;
}

static ptl_handle_md_t bind(ptl_handle_ni_t ni, int64_t* numbers) {
  const ptl_md_t memory = {.start = numbers,
                           .length = rounds * sizeof *numbers,
                           .eq_handle = PTL_EQ_NONE,
                           .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t md;
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  return md;
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_job_info_t job;
  check(PtlJobOpen(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, NULL, NULL, &ni),
        "PtlJobOpen");
  check(PtlJobGetInfo(&job), "PtlJobGetInfo");

  ptl_pt_index_t index;
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, sums, &index), "PtlPTAlloc");
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, results, &index), "PtlPTAlloc");
  const ptl_handle_md_t own_md = bind(ni, own), sum_md = bind(ni, sum),
                        result_md = bind(ni, result);

  const ptl_process_t self = {.rank = job.rank}, parent = {.rank = (job.rank - 1) / 2};
  unsigned children = 0;
  for (unsigned child = 1; child <= 2; ++child) children += 2 * job.rank + child < job.size;

  ptl_handle_ct_t complete[rounds], arrived[rounds];
  for (unsigned round = 0; round < rounds; ++round) {
    const ptl_size_t offset = round * sizeof sum[0];
    complete[round] = expose(ni, sums, &sum[round], round);
    arrived[round] = expose(ni, results, &result[round], round);
    if (job.rank > 0)
      check(PtlTriggeredAtomic(sum_md, offset, sizeof sum[0], PTL_NO_ACK_REQ, parent, sums, round,
                               0, NULL, 0, PTL_SUM, PTL_INT64_T, complete[round], children + 1),
            "PtlTriggeredAtomic");
    else
      check(PtlTriggeredPut(sum_md, offset, sizeof sum[0], PTL_NO_ACK_REQ, self, results, round, 0,
                            NULL, 0, complete[round], children + 1),
            "PtlTriggeredPut");
    for (unsigned child = 1; child <= children; ++child)
      check(PtlTriggeredPut(result_md, offset, sizeof result[0], PTL_NO_ACK_REQ,
                            (ptl_process_t){.rank = 2 * job.rank + child}, results, round, 0, NULL,
                            0, arrived[round], 1),
            "PtlTriggeredPut");
  }
  check(PtlJobBarrier(), "PtlJobBarrier");

  for (unsigned round = 0; round < rounds; ++round) {
    own[round] = (int64_t)(round + 1) * (job.rank + 1);
    check(PtlAtomic(own_md, round * sizeof own[0], sizeof own[0], PTL_NO_ACK_REQ, self, sums, round,
                    0, NULL, 0, PTL_SUM, PTL_INT64_T),
          "PtlAtomic");
  }
  for (unsigned round = 0; round < rounds; ++round) {
    ptl_ct_event_t count;
    check(PtlCTWait(arrived[round], 1, &count), "PtlCTWait");
    const int64_t expected = (int64_t)(round + 1) * job.size * (job.size + 1) / 2;
    if (count.failure != 0 || result[round] != expected) PtlJobAbort(1, "a sum is wrong");
  }
  check(PtlJobBarrier(), "PtlJobBarrier");
  if (job.rank == 0) printf("reduction: %u sums over %u ranks\n", (unsigned)rounds, job.size);
  check(PtlJobClose(ni), "PtlJobClose");
  return 0;
}
