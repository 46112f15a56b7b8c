/* gasnet_info.cc: what the library is, where the processes of a job are, and which variables are
 * set. Alone, or under a launcher; rank 0 prints.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>

#include <cstdio>

namespace {

struct Variable {
  const char* name;
  const char* default_value;
  const char* help;
};
constexpr Variable kVariables[] = {
    {"GASNET_BACKTRACE", "0", "write a backtrace on fatal errors"},
    {"GASNET_BACKTRACE_MT", "1", "of all threads"},
    {"GASNET_BACKTRACE_SIGNAL", "", "a signal that writes a backtrace"},
    {"GASNET_BACKTRACE_TYPE", "GDB,GSTACK,PSTACK,EXECINFO", "mechanisms, in their order"},
    {"GASNET_CATCH_EXIT", "1", "exit() ends the job"},
    {"GASNET_EXITTIMEOUT", "", "seconds that a process may take to end"},
    {"GASNET_EXITTIMEOUT_FACTOR", "0.01", "seconds for each process of the job"},
    {"GASNET_EXITTIMEOUT_MAX", "5", "the most they are"},
    {"GASNET_EXITTIMEOUT_MIN", "2", "what they begin with"},
    {"GASNET_FREEZE", "0", "wait for a debugger at the start"},
    {"GASNET_FREEZE_ON_ERROR", "0", "wait for a debugger on fatal errors"},
    {"GASNET_FREEZE_SIGNAL", "", "a signal that waits for a debugger"},
    {"GASNET_FS_SYNC", "0", "sync() at the end"},
    {"GASNET_MAX_SEGSIZE", GASNETI_MAX_SEGSIZE_CONFIGURE, "largest segment; /P process, /H host"},
    {"GASNET_MAX_THREADS", "", "client threads that may be alive"},
    {"GASNET_NO_CATCH_SIGNAL", "", "signals left alone"},
    {"GASNET_STATSFILE", "", "statistics; % is the rank"},
    {"GASNET_STATSMASK", "all", "their categories"},
    {"GASNET_STATSNODES", "*", "ranks that write them"},
    {"GASNET_SUPERNODE_MAXSIZE", "0", "processes in a neighbourhood; 0 for all of a host"},
    {"GASNET_TRACEFILE", "", "trace; % is the rank"},
    {"GASNET_TRACEFLUSH", "0", "flush after each line"},
    {"GASNET_TRACELOCAL", "1", "trace local puts and gets"},
    {"GASNET_TRACEMASK", "all", "its categories"},
    {"GASNET_TRACENODES", "*", "ranks that write it"},
    {"GASNET_VERBOSEENV", "0", "print settings"}};

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

/** Which way transfers from rank 0 take. */
void print_paths(gex_TM_t team) {
  std::printf("\npaths from rank 0\n");
  constexpr gex_Rank_t kMost = 32;
  for (gex_Rank_t rank = 0; rank < gex_TM_QuerySize(team) && rank < kMost; ++rank) {
    void* local = nullptr;
    gex_EP_QueryBoundSegmentNB(team, rank, nullptr, &local, nullptr, 0);
    std::printf("  rank %-5u %s\n", rank,
                local ? "loads and stores: its segment is mapped here"
                      : "Portals: it is on another host, or in another neighbourhood");
  }
  if (gex_TM_QuerySize(team) > kMost) std::printf("  and so on\n");
}

void print_environment() {
  std::printf("\nenvironment of the job\n");
  for (const Variable& variable : kVariables) {
    const char* value = gasnett_getenv(variable.name);
    std::printf("  %-26s %-28s %-8s %s\n", variable.name,
                value                     ? value
                : *variable.default_value ? variable.default_value
                                          : "-",
                value ? "rank 0" : "default", variable.help);
  }
}

}  // namespace

int main(int argc, char** argv) {
  gex_Client_t client;
  gex_EP_t endpoint;
  gex_TM_t team;
  gex_Segment_t segment;
  if (gex_Client_Init(&client, &endpoint, &team, "INFO", &argc, &argv, 0) != GASNET_OK) return 1;
  if (gex_Segment_Attach(&segment, team, GASNET_PAGESIZE) != GASNET_OK) gasnet_exit(1);
  // The first call of gasnet_exit ends the job: rank 0 makes it.
  while (gex_TM_QueryRank(team) != 0) gasnett_nsleep(1'000'000'000);
  std::printf("GASNet %s, EX specification %d.%d, over Portals 4\n", gasnett_release_version_str(),
              GEX_SPEC_VERSION_MAJOR, GEX_SPEC_VERSION_MINOR);
  std::printf("  %s\n", GASNET_CONFIG_STRING);
  print_job(team);
  print_paths(team);
  print_environment();
  gasnet_exit(0);
}
