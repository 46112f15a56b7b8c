/* hello.c: a child process puts a line of text into the memory of its parent. */
#include <arpa/inet.h>
#include <portals4.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const ptl_pt_index_t greetings = 5; /* the portal table entry that both agree on */

static void check(int code, const char* call) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: return code %d; PTL_LOG_LEVEL=debug says why\n", call, code);
  exit(EXIT_FAILURE);
}

static ptl_handle_ni_t open_interface(void) {
  ptl_handle_ni_t ni;
  check(PtlInit(), "PtlInit");
  check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                  &ni),
        "PtlNIInit");
  return ni;
}

static int greet(ptl_process_t parent) {
  const ptl_handle_ni_t ni = open_interface(); /* a forked child starts afresh */
  char text[64];
  const int length = snprintf(text, sizeof text, "hello from process %d", (int)getpid()) + 1;
  ptl_md_t memory = {.start = text,
                     .length = sizeof text,
                     .options = PTL_MD_EVENT_CT_ACK,
                     .eq_handle = PTL_EQ_NONE};
  ptl_handle_md_t md;
  ptl_ct_event_t acknowledged;
  check(PtlCTAlloc(ni, &memory.ct_handle), "PtlCTAlloc");
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  check(PtlPut(md, 0, (ptl_size_t)length, PTL_CT_ACK_REQ, parent, greetings, 0, 0, NULL, 0),
        "PtlPut");
  check(PtlCTWait(memory.ct_handle, 1, &acknowledged), "PtlCTWait"); /* also ends on a failure */
  check(acknowledged.failure == 0 ? PTL_OK : PTL_FAIL, "the put");
  PtlFini();
  return EXIT_SUCCESS;
}

int main(void) {
  const ptl_handle_ni_t ni = open_interface();
  char line[64];
  const ptl_le_t entry = {.start = line,
                          .length = sizeof line,
                          .ct_handle = PTL_CT_NONE,
                          .uid = PTL_UID_ANY,
                          .options = PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE};
  ptl_handle_eq_t events;
  ptl_handle_le_t le;
  ptl_pt_index_t index;
  ptl_process_t self;
  ptl_event_t event;
  unsigned which;
  check(PtlEQAlloc(ni, 16, &events), "PtlEQAlloc");
  check(PtlPTAlloc(ni, 0, events, greetings, &index), "PtlPTAlloc");
  check(PtlLEAppend(ni, index, &entry, PTL_PRIORITY_LIST, NULL, &le), "PtlLEAppend");
  check(PtlGetPhysId(ni, &self), "PtlGetPhysId");
  if (fork() == 0) exit(greet(self));
  check(PtlEQPoll(&events, 1, 10000, &event, &which), "PtlEQPoll");
  const struct in_addr nid = {htonl(event.initiator.phys.nid)};
  printf("\"%s\": %d bytes, sent by nid %s pid %u\n", line, (int)event.mlength, inet_ntoa(nid),
         event.initiator.phys.pid);
  wait(NULL);
  PtlFini();
  return EXIT_SUCCESS;
}
