/* client_init.cc: gex_Client_Init, which makes a process a member of a job. Set-up path.
 *
 * Order: open the interface; prepare what others will send to; meet; find the neighbours and get
 * the environment of rank 0; start the parts; meet again. What the processes exchange lies in the
 * memory of gasnetrun_portals4 before they meet, if there is any.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "client/client.h"
#include "endpoint/endpoint.h"
#include "exit/job_exit.h"
#include "exit/signals.h"
#include "job/errors.h"
#include "job/job.h"
#include "job/neighbourhood.h"
#include "job/progress_record.h"
#include "job/rank_list.h"
#include "job/thread.h"
#include "network/network.h"
#include "network/poll.h"
#include "segment/attach.h"
#include "segment/limits.h"
#include "segment/segment.h"
#include "start/choices.h"
#include "start/parts.h"
#include "start/start_record.h"
#include "team/team.h"
#include "tools/environment.h"
#include "tools/fatal.h"
#include "trace/trace.h"

namespace lintel::gasnet {
namespace {

static_assert(sizeof(StartRecord) <= kRecordBytes);

const StartRecord& record_of(const Exchange& start, gex_Rank_t rank) {
  return *static_cast<const StartRecord*>(start.record(rank));
}

uint16_t processors_of_host() {
  return static_cast<uint16_t>(std::min(gasnett_cpu_count(), int{UINT16_MAX}));
}

/** The specification allows capitals, digits and underscores. No client keeps to that, and no
 * library requires it. */
bool is_client_name(const char* name) {
  if (!name || !name[0]) return false;
  return std::all_of(name, name + std::strlen(name),
                     [](unsigned char c) { return std::isprint(c); });
}

/** Refuses a call that fails before the process has joined a job. Some clients continue without a
 * network then, and end with 0. So the message is printed regardless of
 * gex_System_SetVerboseErrors. */
int refuse(int code, const char* text) {
  std::fprintf(
      stderr,
      "**********************************************************************\n"
      "GASNet: gex_Client_Init has FAILED in process %d on %s:\n"
      "  %s (%s)\n"
      "This process is not part of a job. If its program goes on, it computes alone, and its\n"
      "results may be wrong.\n"
      "**********************************************************************\n",
      static_cast<int>(getpid()), gasnett_gethostname(), text, gasnet_ErrorName(code));
  return code;
}

void check_environment_size(uint64_t bytes) {
  if (bytes > kControlBytes - kEnvironmentOffset)
    gasnett_fatalerror_nopos("the environment of rank 0 has %llu bytes, at most %zu are possible",
                             static_cast<unsigned long long>(bytes),
                             kControlBytes - kEnvironmentOffset);
}

/** Called by rank 0, where all processes of the job share memory. */
void show_environment(const std::string& text) {
  check_environment_size(text.size());
  std::memcpy(neighbourhood().environment_text(), text.data(), text.size());
  neighbourhood().control().environment_bytes.store(static_cast<uint32_t>(text.size()),
                                                    std::memory_order_relaxed);
}

/** Called by the first process of each neighbourhood: gets the environment of rank 0 from its
 * memory. */
void fetch_environment(uint64_t bytes) {
  ControlBlock& control = neighbourhood().control();
  check_environment_size(bytes);
  if (neighbourhood().is_first()) {
    ptl_md_t md{};
    md.start = neighbourhood().environment_text();
    md.length = bytes;
    md.options = PTL_MD_EVENT_CT_REPLY;
    md.eq_handle = PTL_EQ_NONE;
    md.ct_handle = network().new_counter();
    const ptl_handle_md_t target = network().bind(md);
    check(PtlGet(target, 0, bytes, process_of(0), number_of(PortalIndex::kExchange),
                 kEnvironmentMatchBits, 0, nullptr),
          "PtlGet");
    ptl_ct_event_t count{};
    check(PtlCTWait(md.ct_handle, 1, &count), "PtlCTWait");
    if (count.failure != 0) gasnett_fatalerror_nopos("rank 0 cannot be reached");
    check(PtlMDRelease(target), "PtlMDRelease");
    control.environment_bytes.store(static_cast<uint32_t>(bytes), std::memory_order_release);
  }
  neighbourhood().barrier();
}

void expose_environment(std::string& text) {
  ptl_me_t entry{};
  entry.start = text.data();
  entry.length = text.size();
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_ME_OP_GET;
  entry.match_id.rank = PTL_RANK_ANY;
  entry.match_bits = kEnvironmentMatchBits;
  network().append(PortalIndex::kExchange, entry, nullptr);
}

/** Each process computes the limits of all from the records, without another exchange.
 * @param alike  all processes have the memory of the first one. */
void find_segment_limits(const Exchange& start, bool alike) {
  const char* text =
      gasnett_getenv_withdefault("GASNET_MAX_SEGSIZE", GASNETI_MAX_SEGSIZE_CONFIGURE);
  std::vector<unsigned int> processes(job().host_count());
  for (gex_Rank_t rank = 0; rank < job().size(); ++rank) ++processes[job().host_of(rank)];
  SegmentLimits& limits = segment_limits();
  limits.global = UINTPTR_MAX;
  for (gex_Rank_t rank = 0; rank < job().size(); ++rank) {
    const uintptr_t bytes = parse_segment_limit(
        text, record_of(start, alike ? 0 : rank).memory_bytes, processes[job().host_of(rank)]);
    if (bytes == 0)
      gasnett_fatalerror_nopos(
          "GASNET_MAX_SEGSIZE=%s: give a size such as 512MB or a fraction of "
          "the memory such as 0.5, with /P (per process) or /H (per host)",
          text);
    limits.global = std::min(limits.global, bytes);
    if (rank == job().rank()) limits.local = bytes;
  }
}

void check_alike(const Exchange& start) {
  for (gex_Rank_t rank = 1; rank < job().size(); ++rank) {
    const std::string text = difference(record_of(start, 0), record_of(start, rank), rank);
    if (!text.empty()) gasnett_fatalerror_nopos("%s", text.c_str());
  }
}

void find_hosts(const Exchange& start) {
  if (record_of(start, 0).host_detection == 0) return;
  std::vector<uint64_t> keys;
  for (gex_Rank_t rank = 0; rank < job().size(); ++rank)
    keys.push_back(record_of(start, rank).host_key);
  job().set_hosts(keys);
}

void print_verbose_header() {
  if (!gasnett_verboseenv()) return;
  std::fprintf(stderr, "ENV parameters of GASNet, from rank 0 (%s)\n", GASNET_CONFIG_STRING);
}

}  // namespace

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

namespace {

/** GASNET_OK, or why the process cannot become a member of a job. */
int check_arguments(const gex_Client_t* client_p, const gex_EP_t* ep_p, const gex_TM_t* tm_p,
                    const char* clientName, gex_Flags_t flags) {
  if (const gasneti_client* existing = the_client())
    return report_error(GASNET_ERR_RESOURCE,
                        "gex_Client_Init: a process can have one client, this "
                        "one has %s",
                        existing->name.c_str());
  if (!client_p || !ep_p || !tm_p)
    return refuse(GASNET_ERR_BAD_ARG, "a pointer to a result is NULL");
  if (!is_client_name(clientName))
    return refuse(GASNET_ERR_BAD_ARG,
                  "the name of the client is empty or has characters that cannot be printed");
  if (flags & ~(GEX_FLAG_USES_GASNET1 | GEX_FLAG_DEFER_THREADS))
    return refuse(GASNET_ERR_BAD_ARG,
                  "flags has other bits than GEX_FLAG_USES_GASNET1 and GEX_FLAG_DEFER_THREADS");
  return GASNET_OK;
}

/** @return the record of this process. Data about the machine take time to find: the processes that
 * a launcher has started on one host read them from the record of rank 0. */
StartRecord own_record(uint32_t detection, int descriptor, size_t environment_bytes,
                       bool segment_is_everything) {
  const bool describes_host = !neighbourhood().is_whole_job() || job().rank() == 0;
  return {kWireVersion,
          detection,
          describes_host ? memory_of_host() : 0,
          environment_bytes,
          static_cast<int32_t>(getpid()),
          descriptor,
          static_cast<uint32_t>(gasnett_getenv_int_withdefault("GASNET_SUPERNODE_MAXSIZE", 0, 0)),
          segment_is_everything,
          describes_host ? processors_of_host() : uint16_t{0},
          host_key(detection)};
}

/** Returns when the records of all processes are in `start`. */
void exchange_records(Exchange& start, const StartRecord& mine, const std::string& environment) {
  const bool shares_memory = neighbourhood().is_whole_job();
  if (shares_memory) {
    start.show(&mine);
    if (job().rank() == 0) show_environment(environment);
  }
  network().meet();
  if (shares_memory)
    start.collect();
  else
    start.run(&mine);
}

/** Finds hosts and neighbours in the records, and takes over the environment of rank 0. */
void find_neighbours(const Exchange& start) {
  const bool shared_memory = neighbourhood().is_whole_job();
  check_alike(start);
  find_hosts(start);
  job().set_processors(record_of(start, 0).processors);
  neighbourhood().divide(record_of(start, 0).neighbourhood_limit);
  std::vector<int> process_ids;
  for (const gex_Rank_t rank : neighbourhood().ranks())
    process_ids.push_back(record_of(start, rank).process_id);
  neighbourhood().map_control(process_ids, record_of(start, neighbourhood().ranks()[0]).descriptor);
  set_environment_reports(job().rank() == 0);
  const uint64_t environment_bytes = record_of(start, 0).environment_bytes;
  if (!shared_memory || !neighbourhood().is_whole_job()) fetch_environment(environment_bytes);
  set_job_environment(neighbourhood().environment_text(), environment_bytes);
  print_verbose_header();
  find_segment_limits(start, shared_memory);
}

/** Applies variables of the environment, which is that of rank 0 now. */
void follow_environment(const int* argc, char*** argv) {
  read_freeze_on_error();
  gasnett_backtrace_init(argc && argv && *argc > 0 ? (*argv)[0] : gasnett_exe_name());
  if (!lists_rank(gasnett_getenv_withdefault("GASNET_BACKTRACE_NODES", "*"), job().rank()))
    gasnett_print_backtrace_ifenabled = [](int /*descriptor*/) { return 1; };
  open_trace_files();
  if (gasnett_getenv_yesno_withdefault("GASNET_FREEZE", 0))
    gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen");
  catch_requested_signals();
  check_choices();
}

/** Returns when the parts of all processes have started. */
void start_all_parts(gasneti_client& client, Exchange& end, bool segment_is_everything) {
  gex_EP_t endpoint = GEX_EP_INVALID;
  gex_EP_Create(&endpoint, &client, GEX_EP_CAPABILITY_ALL, 0);
  network().allocate(PortalIndex::kSegment, 0, PTL_EQ_NONE);
  client.team = new_primordial_team(&client, endpoint, 0);
  set_the_client(&client);
  const char can = start_parts();
  if (segment_is_everything) open_everything();
  start_exit_watch();
  end.run(&can);
  bool all_can = true;
  for (gex_Rank_t rank = 0; rank < job().size(); ++rank)
    all_can = all_can && *static_cast<const char*>(end.record(rank)) != 0;
  all_parts_started(all_can);
}

int init(gex_Client_t* client_p, gex_EP_t* ep_p, gex_TM_t* tm_p, const char* clientName, int* argc,
         char*** argv, gex_Flags_t flags, bool segment_is_everything) {
  if (const int code = check_arguments(client_p, ep_p, tm_p, clientName, flags); code != GASNET_OK)
    return code;
  set_environment_reports(false);  // off until the rank of this process is known
  this_thread();                   // takes the place of this thread
  catch_signals();
  network().open();
  job().join();
  open_progress_record();
  // Never destroyed: other processes read it while this process goes on.
  static std::string& environment_text = *new std::string(serialise_environment());
  auto* client = new gasneti_client;
  client->name = clientName;
  client->flags = flags;

  // With another method of detection the members are not known yet.
  const uint32_t detection = host_detection();
  const int descriptor = neighbourhood().use_memory_of_launcher()
                             ? -1
                             : neighbourhood().provide_control(
                                   detection == 0 ? job().ranks_of_host().size() : job().size());
  network().allocate(PortalIndex::kExchange, 0, PTL_EQ_NONE);
  Exchange start(0, sizeof(StartRecord));
  Exchange end(1, 1);
  client->attach_exchange = std::make_unique<Exchange>(2, attach_record_bytes());
  start.prepare();
  end.prepare();
  client->attach_exchange->prepare();
  if (job().rank() == 0) expose_environment(environment_text);
  exchange_records(
      start, own_record(detection, descriptor, environment_text.size(), segment_is_everything),
      environment_text);
  find_neighbours(start);
  follow_environment(argc, argv);
  start_all_parts(*client, end, segment_is_everything);
  report_other_variables();

  *client_p = client;
  *ep_p = client->endpoint(0);
  *tm_p = client->team;
  return GASNET_OK;
}

}  // namespace

int gex_Client_Init(gex_Client_t* client_p, gex_EP_t* ep_p, gex_TM_t* tm_p, const char* clientName,
                    int* argc, char*** argv, gex_Flags_t flags) {
  return init(client_p, ep_p, tm_p, clientName, argc, argv, flags, false);
}

/* Only programs that define GASNET_SEGMENT_EVERYTHING see the declaration. */
extern "C" int gasneti_client_init_everything(gex_Client_t* client_p, gex_EP_t* ep_p,
                                              gex_TM_t* tm_p, const char* clientName, int* argc,
                                              char*** argv, gex_Flags_t flags) {
  return init(client_p, ep_p, tm_p, clientName, argc, argv, flags, true);
}
