/* footprint.c: what an interface and its objects cost in memory, measured where it runs: the
 * process as a whole, the address space that one unit of each limit reserves, the memory that one
 * object of each kind touches. README.md ("Resource usage") shows what it prints. */
#include <portals4.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { objects = 20000, queues = 1000, portals = 4000 };

static void check(int code, const char* call) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: return code %d\n", call, code);
  exit(EXIT_FAILURE);
}

/* ---- memory of this process, in bytes */

static double reserved(void) {
  long pages = 0;
  FILE* statm = fopen("/proc/self/statm", "r");
  if (statm == NULL || fscanf(statm, "%ld", &pages) != 1) check(PTL_FAIL, "/proc/self/statm");
  fclose(statm);
  return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double resident(void) {
  char line[256];
  double kib = -1;
  FILE* rollup = fopen("/proc/self/smaps_rollup", "r");
  while (rollup != NULL && kib < 0 && fgets(line, sizeof line, rollup) != NULL)
    sscanf(line, "Rss: %lf kB", &kib);
  if (kib < 0) check(PTL_FAIL, "/proc/self/smaps_rollup");
  fclose(rollup);
  return kib * 1024;
}

static void print_process(const char* when) {
  printf("  %-38s %8.1f MiB resident %10.1f MiB of address space\n", when, resident() / 1048576,
         reserved() / 1048576);
}

/* ---- address space by limit */

static ptl_ni_limits_t smallest(void) {
  ptl_ni_limits_t limits;
  memset(&limits, 0, sizeof limits);
  limits.max_entries = limits.max_unexpected_headers = limits.max_mds = limits.max_eqs = 1;
  limits.max_cts = limits.max_pt_index = limits.max_iovecs = limits.max_list_size = 1;
  limits.max_triggered_ops = 1;
  return limits;
}

/* Opens and closes a second interface. The physical interface beneath it stays open meanwhile. */
static double reserved_by(const ptl_ni_limits_t* desired, ptl_ni_limits_t* granted) {
  ptl_handle_ni_t ni;
  const double before = reserved();
  check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, desired,
                  granted, &ni),
        "PtlNIInit");
  const double bytes = reserved() - before;
  check(PtlNIFini(ni), "PtlNIFini");
  return bytes;
}

static void print_limit(const char* name, size_t offset) {
  const int many = 1000000;
  ptl_ni_limits_t desired = smallest();
  ptl_ni_limits_t granted;
  const double least = reserved_by(&desired, &granted);
  memcpy((char*)&desired + offset, &many, sizeof many);
  const double most = reserved_by(&desired, &granted);
  int units;
  memcpy(&units, (char*)&granted + offset, sizeof units);
  printf("  %-38s %8.0f bytes\n", name, (most - least) / (units - 1));
}

/* ---- memory by object */

static double started_at;

static void start_counting(void) { started_at = resident(); }
static void print_object(const char* name, int count) {
  printf("  %-38s %8.0f bytes\n", name, (resident() - started_at) / count);
}

static void wait_for(ptl_handle_ct_t counter, ptl_size_t count) {
  ptl_ct_event_t value;
  check(PtlCTWait(counter, count, &value), "PtlCTWait");
  if (value.failure != 0) check(PTL_FAIL, "an operation");
}

static ptl_handle_ct_t new_counter(ptl_handle_ni_t ni) {
  ptl_handle_ct_t counter;
  check(PtlCTAlloc(ni, &counter), "PtlCTAlloc");
  return counter;
}

static ptl_handle_md_t new_descriptor(ptl_handle_ni_t ni, ptl_handle_ct_t counter) {
  static char byte;
  const ptl_md_t memory = {.start = &byte,
                           .length = 1,
                           .options = PTL_MD_EVENT_CT_ACK,
                           .eq_handle = PTL_EQ_NONE,
                           .ct_handle = counter};
  ptl_handle_md_t md;
  check(PtlMDBind(ni, &memory, &md), "PtlMDBind");
  return md;
}

static void append(ptl_handle_ni_t ni, ptl_pt_index_t index, ptl_list_t list, void* start,
                   ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits) {
  ptl_me_t entry = {.start = start,
                    .length = 1,
                    .ct_handle = PTL_CT_NONE,
                    .uid = PTL_UID_ANY,
                    .options = PTL_ME_OP_PUT,
                    .match_bits = match_bits,
                    .ignore_bits = ignore_bits};
  entry.match_id.phys.nid = PTL_NID_ANY;
  entry.match_id.phys.pid = PTL_PID_ANY;
  ptl_handle_me_t handle;
  check(PtlMEAppend(ni, index, &entry, list, NULL, &handle), "PtlMEAppend");
}

static ptl_pt_index_t new_portal(ptl_handle_ni_t ni) {
  ptl_pt_index_t index;
  check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index), "PtlPTAlloc");
  return index;
}

static void print_portals(void) {
  const ptl_ni_limits_t desired = {.max_pt_index = portals}; /* zero: the default */
  ptl_handle_ni_t ni;
  check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, &desired,
                  NULL, &ni),
        "PtlNIInit");
  start_counting();
  for (int i = 0; i < portals; ++i) new_portal(ni);
  print_object("portal table entry", portals);
  check(PtlNIFini(ni), "PtlNIFini");
}

static void print_objects(ptl_handle_ni_t ni, ptl_process_t self) {
  static char byte;
  const ptl_handle_ct_t acknowledged = new_counter(ni);
  const ptl_handle_ct_t never = new_counter(ni);
  const ptl_handle_md_t md = new_descriptor(ni, acknowledged);
  const ptl_pt_index_t posted = new_portal(ni);
  const ptl_pt_index_t unexpected = new_portal(ni);
  append(ni, unexpected, PTL_OVERFLOW_LIST, &byte, 0, ~(ptl_match_bits_t)0);
  check(PtlPut(md, 0, 1, PTL_CT_ACK_REQ, self, unexpected, 0, 0, NULL, 0), "PtlPut");
  wait_for(acknowledged, 1);

  start_counting();
  for (int i = 0; i < objects; ++i) new_descriptor(ni, acknowledged);
  print_object("memory descriptor", objects);
  start_counting();
  for (int i = 0; i < objects; ++i) new_counter(ni);
  print_object("counting event", objects);
  start_counting();
  for (int i = 0; i < objects; ++i)
    check(PtlTriggeredCTInc(never, (ptl_ct_event_t){1, 0}, never, 1), "PtlTriggeredCTInc");
  print_object("triggered operation", objects);
  start_counting();
  for (int i = 0; i < objects; ++i) append(ni, posted, PTL_PRIORITY_LIST, &byte, (unsigned)i, 0);
  print_object("match list entry, index included", objects);
  start_counting();
  for (int i = 0; i < objects; ++i) {
    check(PtlPut(md, 0, 1, PTL_CT_ACK_REQ, self, unexpected, (unsigned)i, 0, NULL, 0), "PtlPut");
    wait_for(acknowledged, (ptl_size_t)i + 2);
  }
  print_object("unexpected header", objects);
  start_counting();
  const double before = reserved();
  for (int i = 0; i < queues; ++i) {
    ptl_handle_eq_t events;
    check(PtlEQAlloc(ni, 256, &events), "PtlEQAlloc");
  }
  const double ring = (reserved() - before) / queues;
  print_object("event queue that never held an event", queues);
  printf("  %-38s %8.0f bytes\n", "... of address space, for 256 events", ring);
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_process_t self;

  printf("process\n");
  print_process("before PtlInit");
  check(PtlInit(), "PtlInit");
  check(
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni),
      "PtlNIInit");
  print_process("one interface, default limits");
  check(PtlGetPhysId(ni, &self), "PtlGetPhysId");

  printf("address space that one more interface reserves\n");
  const ptl_ni_limits_t least = smallest();
  printf("  %-38s %8.1f MiB\n", "default limits", reserved_by(NULL, NULL) / 1048576);
  printf("  %-38s %8.1f MiB\n", "all limits 1, as far as granted",
         reserved_by(&least, NULL) / 1048576);
  printf("address space by limit, each unit\n");
  print_limit("max_entries", offsetof(ptl_ni_limits_t, max_entries));
  print_limit("max_unexpected_headers", offsetof(ptl_ni_limits_t, max_unexpected_headers));
  print_limit("max_mds", offsetof(ptl_ni_limits_t, max_mds));
  print_limit("max_eqs", offsetof(ptl_ni_limits_t, max_eqs));
  print_limit("max_cts", offsetof(ptl_ni_limits_t, max_cts));
  print_limit("max_triggered_ops", offsetof(ptl_ni_limits_t, max_triggered_ops));

  printf("resident memory by object, each\n");
  print_portals();
  print_objects(ni, self);
  PtlFini();
  return EXIT_SUCCESS;
}
