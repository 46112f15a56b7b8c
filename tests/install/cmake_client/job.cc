// A C++11 client of the installed run-time library: joins a job of one process.
#include <portals4_runtime.h>

#include <iostream>

int main() {
  ptl_handle_ni_t ni;
  ptl_job_info_t job;
  ptl_rid_t rank = 0;
  unsigned size = 0;
  if (PtlJobOpen(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, nullptr, nullptr, &ni) !=
          PTL_OK ||
      PtlJobGetInfo(&job) != PTL_OK || PtlGetRank(ni, &rank, &size) != PTL_OK ||
      PtlJobClose(ni) != PTL_OK) {
    std::cerr << "a call failed: " << PtlJobError() << '\n';
    return 1;
  }
  return job.size == size && job.rank == rank && size == 1 ? 0 : 1;
}
