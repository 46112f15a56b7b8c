/* hello.c: every process of a job puts a line of text into the memory of rank 0, which prints them.
 * Run it alone, with `mpirun -n 4 hello`, or with `srun --mpi=pmix -n 4 hello`. */
#define _POSIX_C_SOURCE 200809L /* gethostname */
#include <portals4_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { line_bytes = 128, greetings = 5 };

static void check(int code, const char* call) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: return code %d\n", call, code);
  PtlJobAbort(1, "a call failed");
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_job_info_t job;
  uint32_t node;
  check(PtlJobOpen(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, NULL, NULL, &ni),
        "PtlJobOpen");
  check(PtlJobGetInfo(&job), "PtlJobGetInfo");
  check(PtlJobGetNode(job.rank, &node), "PtlJobGetNode");

  char* const lines = calloc(job.size, line_bytes);
  ptl_le_t entry = {.start = lines,
                    .length = (ptl_size_t)job.size * line_bytes,
                    .uid = PTL_UID_ANY,
                    .options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
  ptl_handle_le_t le;
  ptl_pt_index_t index;
  ptl_ct_event_t count;
  check(lines != NULL ? PTL_OK : PTL_NO_SPACE, "calloc");
  check(PtlCTAlloc(ni, &entry.ct_handle), "PtlCTAlloc");
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, greetings, &index), "PtlPTAlloc");
  check(PtlLEAppend(ni, index, &entry, PTL_PRIORITY_LIST, NULL, &le), "PtlLEAppend");
  check(PtlJobBarrier(), "PtlJobBarrier"); /* now everybody may send */

  char text[line_bytes] = "";
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  snprintf(text, sizeof text, "hello from rank %u of %u, node %u (%s), local rank %u", job.rank,
           job.size, node, host, job.local_rank);
  ptl_md_t memory = {.start = text,
                     .length = sizeof text,
                     .options = PTL_MD_EVENT_CT_ACK,
                     .eq_handle = PTL_EQ_NONE};
  ptl_handle_md_t md;
  check(PtlCTAlloc(ni, &memory.ct_handle), "PtlCTAlloc");
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  check(PtlPut(md, 0, sizeof text, PTL_CT_ACK_REQ, (ptl_process_t){.rank = 0}, greetings, 0,
               (ptl_size_t)job.rank * line_bytes, NULL, 0),
        "PtlPut");
  check(PtlCTWait(memory.ct_handle, 1, &count), "PtlCTWait");
  check(count.failure == 0 ? PTL_OK : PTL_FAIL, "the put");

  if (job.rank == 0) {
    check(PtlCTWait(entry.ct_handle, job.size, &count), "PtlCTWait");
    for (ptl_rank_t rank = 0; rank < job.size; ++rank) {
      char expected[64];
      const char* line = lines + (size_t)rank * line_bytes;
      snprintf(expected, sizeof expected, "hello from rank %u of %u,", rank, job.size);
      if (strncmp(line, expected, strlen(expected)) != 0) PtlJobAbort(1, "a greeting is wrong");
      puts(line);
    }
    printf("hello: %u greetings\n", job.size);
  }
  check(PtlJobBarrier(), "PtlJobBarrier"); /* no process closes while others need it */
  check(PtlJobClose(ni), "PtlJobClose");
  free(lines);
  return 0;
}
