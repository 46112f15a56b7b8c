/* work_queue.c: ranks take tasks from a queue at rank 0 with fetch-atomics, as fast as each can,
 * and add up the results with atomics; rank 0 does nothing for it but to own the memory. Alone, or
 * under mpirun or srun --mpi=pmix. */
#include <portals4_runtime.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { tasks = 2000, queue = 9 };

/* At rank 0. */
static struct board {
  uint64_t next;        /* first task that no rank has taken */
  uint64_t total;       /* of the results */
  uint64_t done[tasks]; /* how often each task was done */
} board;

static ptl_handle_ct_t counter;
static ptl_size_t operations;

static void check(int code, const char* call) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: return code %d\n", call, code);
  PtlJobAbort(1, "a call failed");
}

static void wait_for_all(void) {
  ptl_ct_event_t count;
  check(PtlCTWait(counter, operations, &count), "PtlCTWait");
  check(count.failure == 0 ? PTL_OK : PTL_FAIL, "an operation");
}

static void add(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t remote_offset) {
  check(PtlAtomic(md, local_offset, sizeof(uint64_t), PTL_CT_ACK_REQ, (ptl_process_t){.rank = 0},
                  queue, 0, remote_offset, NULL, 0, PTL_SUM, PTL_UINT64_T),
        "PtlAtomic");
  ++operations;
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_job_info_t job;
  check(PtlJobOpen(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, NULL, NULL, &ni),
        "PtlJobOpen");
  check(PtlJobGetInfo(&job), "PtlJobGetInfo");
  check(PtlCTAlloc(ni, &counter), "PtlCTAlloc");

  const ptl_le_t entry = {.start = &board,
                          .length = sizeof board,
                          .ct_handle = PTL_CT_NONE,
                          .uid = PTL_UID_ANY,
                          .options = PTL_LE_OP_PUT | PTL_LE_OP_GET};
  ptl_handle_le_t le;
  ptl_pt_index_t index;
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, queue, &index), "PtlPTAlloc");
  check(PtlLEAppend(ni, index, &entry, PTL_PRIORITY_LIST, NULL, &le), "PtlLEAppend");

  struct local {
    uint64_t task, one, result;
  } local = {.one = 1};
  const ptl_md_t memory = {.start = &local,
                           .length = sizeof local,
                           .options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY,
                           .eq_handle = PTL_EQ_NONE,
                           .ct_handle = counter};
  ptl_handle_md_t md;
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  check(PtlJobBarrier(), "PtlJobBarrier");

  unsigned mine = 0;
  for (;; ++mine) {
    check(PtlFetchAtomic(md, offsetof(struct local, task), md, offsetof(struct local, one),
                         sizeof(uint64_t), (ptl_process_t){.rank = 0}, queue, 0,
                         offsetof(struct board, next), NULL, 0, PTL_SUM, PTL_UINT64_T),
          "PtlFetchAtomic");
    ++operations;
    wait_for_all();
    if (local.task >= tasks) break;
    local.result = local.task * local.task; /* the work */
    add(md, offsetof(struct local, result), offsetof(struct board, total));
    add(md, offsetof(struct local, one),
        offsetof(struct board, done) + local.task * sizeof(uint64_t));
    wait_for_all();
  }
  check(PtlJobBarrier(), "PtlJobBarrier");
  if (job.rank == 0) {
    for (unsigned task = 0; task < tasks; ++task)
      if (board.done[task] != 1) PtlJobAbort(1, "a task was not done exactly once");
    if (board.total != (uint64_t)(tasks - 1) * tasks * (2 * tasks - 1) / 6)
      PtlJobAbort(1, "the total is wrong");
    printf("work_queue: %u tasks by %u ranks, %u by rank 0\n", (unsigned)tasks, job.size, mine);
  }
  check(PtlJobClose(ni), "PtlJobClose");
  return 0;
}
