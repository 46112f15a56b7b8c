/* common.h: what the examples of this directory share. Each talks to itself: a process is a
 * target like any other, and with the address of another process the same calls reach that. */
#ifndef COMMON_H
#define COMMON_H

#include <portals4_lintel.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check(int code, const char* call) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: %s\n", call, PtlLintelStrError(code));
  exit(EXIT_FAILURE);
}

static inline void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "not as expected: %s\n", what);
  exit(EXIT_FAILURE);
}

static inline ptl_handle_ni_t open_interface(unsigned int matching, ptl_process_t* self) {
  ptl_handle_ni_t ni;
  check(PtlInit(), "PtlInit");
  check(PtlNIInit(PTL_IFACE_DEFAULT, matching | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni),
        "PtlNIInit");
  check(PtlGetPhysId(ni, self), "PtlGetPhysId");
  return ni;
}

static inline ptl_handle_eq_t allocate_queue(ptl_handle_ni_t ni) {
  ptl_handle_eq_t queue;
  check(PtlEQAlloc(ni, 64, &queue), "PtlEQAlloc");
  return queue;
}

static inline ptl_handle_ct_t allocate_counter(ptl_handle_ni_t ni) {
  ptl_handle_ct_t counter;
  check(PtlCTAlloc(ni, &counter), "PtlCTAlloc");
  return counter;
}

/* The next event of this kind, within ten seconds; others are shown and passed over. */
static inline ptl_event_t await_event(ptl_handle_eq_t queue, ptl_event_kind_t kind) {
  for (;;) {
    ptl_event_t event;
    unsigned int which;
    char text[PTL_EV_STR_SIZE];
    check(PtlEQPoll(&queue, 1, 10000, &event, &which), "PtlEQPoll");
    PtlEvToStr(0, &event, text);
    printf("  %s\n", text);
    if (event.type == kind) return event;
  }
}

/* Waits until the counter reaches the test; none of the operations that it counts may fail. */
static inline void await_count(ptl_handle_ct_t counter, ptl_size_t test) {
  ptl_ct_event_t count;
  check(PtlCTWait(counter, test, &count), "PtlCTWait");
  expect(count.failure == 0, "no operation fails");
}

#endif
