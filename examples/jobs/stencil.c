/* stencil.c: heat spreads over a plane that is divided among the ranks, each with one square. After
 * a step a rank's edges go to its neighbours by triggered puts, set up for all steps beforehand:
 * one PtlCTInc sends them. Each side of a square counts what arrives. The result is compared with
 * the same computation without parallelism, bit by bit. Alone, or under mpirun or srun --mpi=pmix.
 */
#include <portals4_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { edge = 24, steps = 40, halos = 11, sides = 4 };
enum { west, east, north, south };

/* Edges for even and odd steps: a neighbour may be one step ahead, but not two. */
static double outgoing[2][sides][edge], incoming[2][sides][edge];
static double square[2][edge + 2][edge + 2];

static void check(int code, const char* call) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: return code %d\n", call, code);
  PtlJobAbort(1, "a call failed");
}

static double initial(unsigned row, unsigned column) {
  return (double)((row * 7 + column * 13) % 100);
}

static double next_value(double here, double w, double e, double n, double s) {
  return here + 0.125 * (w + e + n + s - 4 * here);
}

/* The whole plane, with a cold border, by one process. */
static double* whole_plane(unsigned rows, unsigned columns) {
  const size_t width = columns + 2, cells = (rows + 2) * width;
  double* now = calloc(2 * cells, sizeof *now);
  if (now == NULL) PtlJobAbort(1, "no memory");
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < columns; ++column)
      now[(row + 1) * width + column + 1] = initial(row, column);
  for (unsigned step = 0; step < steps; ++step) {
    const double* from = now + (step % 2) * cells;
    double* to = now + ((step + 1) % 2) * cells;
    for (size_t row = 1; row <= rows; ++row)
      for (size_t column = 1; column <= columns; ++column) {
        const size_t at = row * width + column;
        to[at] =
            next_value(from[at], from[at - 1], from[at + 1], from[at - width], from[at + width]);
      }
  }
  return now; /* steps is even: the result is in the first half */
}

static void pack(const double from[edge + 2][edge + 2], double to[sides][edge]) {
  for (unsigned i = 0; i < edge; ++i) {
    to[west][i] = from[i + 1][1];
    to[east][i] = from[i + 1][edge];
    to[north][i] = from[1][i + 1];
    to[south][i] = from[edge][i + 1];
  }
}

static void unpack(double from[edge], unsigned side, double to[edge + 2][edge + 2]) {
  for (unsigned i = 0; i < edge; ++i) {
    if (side == west) to[i + 1][0] = from[i];
    if (side == east) to[i + 1][edge + 1] = from[i];
    if (side == north) to[0][i + 1] = from[i];
    if (side == south) to[edge + 1][i + 1] = from[i];
  }
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_job_info_t job;
  check(PtlJobOpen(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, NULL, NULL, &ni),
        "PtlJobOpen");
  check(PtlJobGetInfo(&job), "PtlJobGetInfo");

  unsigned ranks_down = 1;
  for (unsigned i = 1; i * i <= job.size; ++i)
    if (job.size % i == 0) ranks_down = i;
  const unsigned ranks_across = job.size / ranks_down;
  const unsigned my_row = job.rank / ranks_across, my_column = job.rank % ranks_across;
  const int has[sides] = {my_column > 0, my_column + 1 < ranks_across, my_row > 0,
                          my_row + 1 < ranks_down};
  const ptl_rank_t neighbour[sides] = {job.rank - 1, job.rank + 1, job.rank - ranks_across,
                                       job.rank + ranks_across};
  const unsigned opposite[sides] = {east, west, south, north};

  ptl_pt_index_t index;
  ptl_handle_ct_t computed, arrived[sides];
  ptl_handle_md_t md;
  check(PtlCTAlloc(ni, &computed), "PtlCTAlloc");
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, halos, &index), "PtlPTAlloc");
  const ptl_md_t memory = {.start = outgoing,
                           .length = sizeof outgoing,
                           .eq_handle = PTL_EQ_NONE,
                           .ct_handle = PTL_CT_NONE};
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  for (unsigned side = 0; side < sides; ++side) {
    check(PtlCTAlloc(ni, &arrived[side]), "PtlCTAlloc");
    for (unsigned parity = 0; parity < 2; ++parity) {
      const ptl_me_t entry = {.start = incoming[parity][side],
                              .length = sizeof incoming[parity][side],
                              .ct_handle = arrived[side],
                              .uid = PTL_UID_ANY,
                              .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                              .match_id = {.rank = PTL_RANK_ANY},
                              .match_bits = 2 * side + parity};
      ptl_handle_me_t me;
      check(PtlMEAppend(ni, index, &entry, PTL_PRIORITY_LIST, NULL, &me), "PtlMEAppend");
    }
    for (unsigned step = 0; has[side] && step < steps; ++step)
      check(PtlTriggeredPut(md, (ptl_size_t)((char*)outgoing[step % 2][side] - (char*)outgoing),
                            sizeof outgoing[0][0], PTL_NO_ACK_REQ,
                            (ptl_process_t){.rank = neighbour[side]}, halos,
                            2 * opposite[side] + step % 2, 0, NULL, 0, computed, step + 1),
            "PtlTriggeredPut");
  }
  for (unsigned row = 0; row < edge; ++row)
    for (unsigned column = 0; column < edge; ++column)
      square[0][row + 1][column + 1] = initial(my_row * edge + row, my_column * edge + column);
  check(PtlJobBarrier(), "PtlJobBarrier");

  for (unsigned step = 0; step < steps; ++step) {
    double(*now)[edge + 2] = square[step % 2];
    double(*then)[edge + 2] = square[(step + 1) % 2];
    pack((const double(*)[edge + 2]) now, outgoing[step % 2]);
    check(PtlCTInc(computed, (ptl_ct_event_t){.success = 1}), "PtlCTInc"); /* sends the edges */
    for (unsigned side = 0; side < sides; ++side) {
      ptl_ct_event_t count;
      if (!has[side]) continue;
      check(PtlCTWait(arrived[side], step + 1, &count), "PtlCTWait");
      check(count.failure == 0 ? PTL_OK : PTL_FAIL, "a put of a neighbour");
      unpack(incoming[step % 2][side], side, now);
    }
    for (unsigned row = 1; row <= edge; ++row)
      for (unsigned column = 1; column <= edge; ++column)
        then[row][column] = next_value(now[row][column], now[row][column - 1], now[row][column + 1],
                                       now[row - 1][column], now[row + 1][column]);
  }

  double* const expected = whole_plane(ranks_down * edge, ranks_across * edge);
  const size_t width = (size_t)ranks_across * edge + 2;
  for (unsigned row = 0; row < edge; ++row)
    if (memcmp(&square[0][row + 1][1],
               &expected[((size_t)my_row * edge + row + 1) * width + (size_t)my_column * edge + 1],
               edge * sizeof(double)) != 0)
      PtlJobAbort(1, "the parallel result differs");
  free(expected);
  check(PtlJobBarrier(), "PtlJobBarrier");
  if (job.rank == 0)
    printf("stencil: %u steps on %u x %u ranks\n", (unsigned)steps, ranks_down, ranks_across);
  check(PtlJobClose(ni), "PtlJobClose");
  return 0;
}
