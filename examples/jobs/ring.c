/* ring.c: a number travels from rank to rank, several times round the job; each adds its rank. With
 * matching: a lap is known by its match bits. Alone, or under mpirun or srun --mpi=pmix. */
#include <portals4_runtime.h>
#include <stdint.h>
#include <stdio.h>

enum { laps = 10, ring = 6 };

static void check(int code, const char* call) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: return code %d\n", call, code);
  PtlJobAbort(1, "a call failed");
}

/* Waits for the next message, which must be that of this lap. */
static void receive(ptl_handle_eq_t events, ptl_match_bits_t lap) {
  ptl_event_t event;
  check(PtlEQWait(events, &event), "PtlEQWait");
  if (event.type != PTL_EVENT_PUT || event.ni_fail_type != PTL_NI_OK || event.match_bits != lap)
    PtlJobAbort(1, "not the message that was due");
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_job_info_t job;
  check(PtlJobOpen(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, NULL, NULL, &ni),
        "PtlJobOpen");
  check(PtlJobGetInfo(&job), "PtlJobGetInfo");

  uint64_t inbox[laps], token = 0;
  ptl_handle_eq_t events;
  ptl_pt_index_t index;
  check(PtlEQAlloc(ni, 64, &events), "PtlEQAlloc");
  check(PtlPTAlloc(ni, 0, events, ring, &index), "PtlPTAlloc");
  for (unsigned lap = 0; lap < laps; ++lap) {
    const ptl_me_t entry = {
        .start = &inbox[lap],
        .length = sizeof inbox[lap],
        .ct_handle = PTL_CT_NONE,
        .uid = PTL_UID_ANY,
        .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                   PTL_ME_EVENT_UNLINK_DISABLE,
        .match_id = {.rank = (job.rank + job.size - 1) % job.size}, /* the one before */
        .match_bits = lap};
    ptl_handle_me_t me;
    check(PtlMEAppend(ni, index, &entry, PTL_PRIORITY_LIST, NULL, &me), "PtlMEAppend");
  }
  ptl_md_t memory = {.start = &token,
                     .length = sizeof token,
                     .options = PTL_MD_EVENT_CT_ACK,
                     .eq_handle = PTL_EQ_NONE};
  ptl_handle_md_t md;
  check(PtlCTAlloc(ni, &memory.ct_handle), "PtlCTAlloc");
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  check(PtlJobBarrier(), "PtlJobBarrier");

  const ptl_process_t next = {.rank = (job.rank + 1) % job.size};
  for (unsigned lap = 0; lap < laps; ++lap) {
    if (job.rank != 0) {
      receive(events, lap);
      token = inbox[lap];
    }
    token += job.rank;
    ptl_ct_event_t count;
    check(PtlPut(md, 0, sizeof token, PTL_CT_ACK_REQ, next, ring, lap, 0, NULL, 0), "PtlPut");
    check(PtlCTWait(memory.ct_handle, lap + 1, &count), "PtlCTWait"); /* token may change again */
    check(count.failure == 0 ? PTL_OK : PTL_FAIL, "the put");
    if (job.rank == 0) {
      receive(events, lap);
      token = inbox[lap];
    }
  }
  if (job.rank == 0) {
    const uint64_t expected = (uint64_t)laps * job.size * (job.size - 1) / 2;
    if (token != expected) PtlJobAbort(1, "the sum is wrong");
    printf("ring: %u laps over %u ranks, sum %llu\n", (unsigned)laps, job.size,
           (unsigned long long)token);
  }
  check(PtlJobBarrier(), "PtlJobBarrier");
  check(PtlJobClose(ni), "PtlJobClose");
  return 0;
}
