/* gasnet_info.cc: prints the configuration of the library, where the processes of a job are, and
 * which variables are set. Alone or under a launcher; rank 0 prints.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>
#include <portals4_lintel.h>
#include <portals4_runtime.h>

#include <cstdio>
#include <cstring>

#include "tools/variables.h"

namespace {

void print_job(gex_TM_t team) {
  gex_Rank_t neighbours = 0;
  gex_Rank_t neighbourhoods = 0;
  gex_Rank_t hosts = 0;
  gex_System_QueryNbrhdInfo(nullptr, &neighbours, nullptr);
  gex_System_QueryMyPosition(&neighbourhoods, nullptr, &hosts, nullptr);
  char local[64];
  char global[64];
  gasnett_format_number(static_cast<int64_t>(gasnet_getMaxLocalSegmentSize()), local, sizeof local,
                        1);
  gasnett_format_number(static_cast<int64_t>(gasnet_getMaxGlobalSegmentSize()), global,
                        sizeof global, 1);
  std::printf("\njob\n  processes        %u\n  hosts            %u\n  neighbourhoods   %u\n",
              gex_TM_QuerySize(team), hosts, neighbourhoods);
  std::printf("  neighbours       %u, of rank 0, with itself\n", neighbours);
  std::printf("  largest segment  %s here, %s everywhere\n", local, global);
  std::printf("  threads          %llu\n",
              static_cast<unsigned long long>(gex_System_QueryMaxThreads()));
}

void print_limits(gex_TM_t team, const ptl_ni_limits_t& limits) {
  const gex_Rank_t last = gex_TM_QuerySize(team) - 1;
  std::printf("\nlimits\n  arguments of a message     %u\n", gex_AM_MaxArgs());
  std::printf("  Medium                     %zu bytes\n",
              gex_AM_MaxRequestMedium(team, last, GEX_EVENT_NOW, 0, 16));
  std::printf("  Long                       %zu bytes\n",
              gex_AM_MaxRequestLong(team, last, GEX_EVENT_NOW, 0, 16));
  std::printf("  endpoints of a process     %d\n", GASNET_MAXEPS);
  std::printf("  message of Portals         %llu bytes; longer transfers are cut\n",
              static_cast<unsigned long long>(limits.max_msg_size));
  std::printf("  put copied at once         %llu bytes\n",
              static_cast<unsigned long long>(limits.max_volatile_size));
  std::printf("  memory descriptors         %d, of which events take half at most\n",
              limits.max_mds);
}

/** Why the segment of a rank is not mapped here. */
const char* reason_not_mapped(gex_Rank_t rank) {
  gex_RankInfo_t* host = nullptr;
  gex_Rank_t count = 0;
  gex_System_QueryHostInfo(&host, &count, nullptr);
  for (gex_Rank_t i = 0; i < count; ++i)
    if (host[i].gex_jobrank == rank)
      return "another neighbourhood of this host (GASNET_SUPERNODE_MAXSIZE)";
  return "another host";
}

/** Prints the path of transfers and messages from rank 0. */
void print_paths(gex_TM_t team, ptl_handle_ni_t interface) {
  std::printf("\npaths from rank 0\n");
  constexpr gex_Rank_t kMost = 32;
  for (gex_Rank_t rank = 0; rank < gex_TM_QuerySize(team) && rank < kMost; ++rank) {
    void* local = nullptr;
    gex_EP_QueryBoundSegmentNB(team, rank, nullptr, &local, nullptr, 0);
    ptl_process_t process{};
    process.rank = rank;
    ptl_lintel_path_t path{};
    PtlLintelGetPath(interface, process, &path);
    std::printf("  rank %-5u puts and gets: %s\n", rank,
                local ? "loads and stores, its segment is mapped here" : "Portals");
    if (!local) std::printf("             because it is in %s\n", reason_not_mapped(rank));
    std::printf("             messages: %sPortals over %s %s\n",
                local ? "small ones by a ring in shared memory, others by " : "",
                *path.transport ? path.transport : "nothing", path.device);
    if (*path.reason) std::printf("             %s\n", path.reason);
  }
  if (gex_TM_QuerySize(team) > kMost) std::printf("  and so on\n");
}

void print_environment() {
  std::printf("\nenvironment of the job\n");
  for (const auto& variable : lintel::gasnet::kVariables) {
    const char* value = gasnett_getenv(variable.name);
    std::printf("  %-26s %-28s %-8s %s\n", variable.name, value ? value : variable.default_value,
                value ? "rank 0" : "default", variable.help);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && (!std::strcmp(argv[1], "-h") || !std::strcmp(argv[1], "--help"))) {
    std::puts(
        "Shows where the processes of a GASNet job are, limits, paths, and variables.\n"
        "Usage: gasnet_info, or gasnetrun_portals4 -n PROCESSES gasnet_info");
    return 0;
  }
  gex_Client_t client;
  gex_EP_t endpoint;
  gex_TM_t team;
  gex_Segment_t segment;
  if (gex_Client_Init(&client, &endpoint, &team, "INFO", &argc, &argv, 0) != GASNET_OK) return 1;
  if (gex_Segment_Attach(&segment, team, GASNET_PAGESIZE) != GASNET_OK) gasnet_exit(1);
  // The first call of gasnet_exit ends the job. Rank 0 makes it.
  while (gex_TM_QueryRank(team) != 0) gasnett_nsleep(1'000'000'000);
  std::printf("GASNet %s, EX specification %d.%d, over Portals 4\n", gasnett_release_version_str(),
              GEX_SPEC_VERSION_MAJOR, GEX_SPEC_VERSION_MINOR);
  std::printf("  %s\n", GASNET_CONFIG_STRING);
  print_job(team);
  // The interface that the library has opened.
  ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
  ptl_ni_limits_t limits{};
  PtlJobOpen(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, nullptr, &limits, &interface);
  print_limits(team, limits);
  print_paths(team, interface);
  print_environment();
  gasnet_exit(0);
}
