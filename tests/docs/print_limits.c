/* Opens an interface three times: without desired limits, with the smallest and with the largest
 * ones. Prints the limits that it gets. Each line contains name, default, least, most.
 * check_readme.py compares them with README.md. */
#include <limits.h>
#include <portals4.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static ptl_ni_limits_t granted(unsigned options, const ptl_ni_limits_t* desired) {
  ptl_ni_limits_t actual;
  ptl_handle_ni_t ni;
  const int code = PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, desired, &actual, &ni);
  if (code != PTL_OK) {
    fprintf(stderr, "PtlNIInit: return code %d\n", code);
    exit(EXIT_FAILURE);
  }
  return actual;
}

static ptl_ni_limits_t all(int count, ptl_size_t bytes) {
  return (ptl_ni_limits_t){count, count, count, count, count, count, count, count,
                           count, bytes, bytes, bytes, bytes, bytes, bytes, 0};
}

#define COUNT(field) \
  { #field, offsetof(ptl_ni_limits_t, field), sizeof(int) }
#define BYTES(field) \
  { #field, offsetof(ptl_ni_limits_t, field), sizeof(ptl_size_t) }
static const struct {
  const char* name;
  size_t offset;
  size_t size;
} fields[] = {COUNT(max_entries),
              COUNT(max_unexpected_headers),
              COUNT(max_mds),
              COUNT(max_eqs),
              COUNT(max_cts),
              COUNT(max_pt_index),
              COUNT(max_iovecs),
              COUNT(max_list_size),
              COUNT(max_triggered_ops),
              BYTES(max_msg_size),
              BYTES(max_atomic_size),
              BYTES(max_fetch_atomic_size),
              BYTES(max_waw_ordered_size),
              BYTES(max_war_ordered_size),
              BYTES(max_volatile_size)};

static unsigned long long value(const ptl_ni_limits_t* limits, size_t field) {
  const char* at = (const char*)limits + fields[field].offset;
  return fields[field].size == sizeof(int) ? (unsigned long long)*(const int*)(const void*)at
                                           : *(const ptl_size_t*)(const void*)at;
}

int main(void) {
  if (PtlInit() != PTL_OK) return EXIT_FAILURE;
  const ptl_ni_limits_t little = all(1, 1);
  const ptl_ni_limits_t much = all(INT_MAX, PTL_SIZE_MAX);
  /* The limits of an interface are fixed when it is first opened, so each call uses another
   * interface. */
  const ptl_ni_limits_t by_default = granted(PTL_NI_MATCHING | PTL_NI_PHYSICAL, NULL);
  const ptl_ni_limits_t least = granted(PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, &little);
  const ptl_ni_limits_t most = granted(PTL_NI_MATCHING | PTL_NI_LOGICAL, &much);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i)
    printf("%s %llu %llu %llu\n", fields[i].name, value(&by_default, i), value(&least, i),
           value(&most, i));
  PtlFini();
  return EXIT_SUCCESS;
}
