// What a process costs while it does nothing.
#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "portals_process.h"
#include "probes.h"

namespace probe {

namespace {

// The progress thread polls for a moment after the last message before it goes to sleep; that
// moment belongs to the message, not to idleness.
constexpr double settle_s = 0.1;

struct Report {
  std::atomic<int> ready;
  std::atomic<std::uint64_t> id;
  double rss_before_mib;     // before PtlInit
  double rss_interface_mib;  // one interface open, no traffic yet
  double rss_peer_mib;       // after an exchange with one peer
  double cpu_percent;        // of one core
};

double resident_mib() {
  long total_pages = 0;
  long resident_pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &total_pages, &resident_pages) != 2)
    resident_pages = 0;
  if (file != nullptr) std::fclose(file);
  return static_cast<double>(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) /
         (1 << 20);
}

double processor_time_s() {
  timespec spent;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

void sleep_s(double seconds) { usleep(static_cast<useconds_t>(seconds * 1e6)); }

void run(int index, Report* reports, const Options& options) {
  pin_to(options.cpus[index]);
  Report& mine = reports[index];
  const Report& other = reports[1 - index];
  char buffer[8] = {};

  mine.rss_before_mib = resident_mib();
  PortalsProcess process;
  mine.rss_interface_mib = resident_mib();
  process.expose(buffer, sizeof buffer);
  process.bind(buffer, sizeof buffer);
  mine.id = (std::uint64_t{process.id().phys.nid} << 32) | process.id().phys.pid;
  mine.ready = 1;
  wait_until([&] { return other.ready >= 1; }, "the other process");

  ptl_process_t peer{};
  peer.phys.nid = static_cast<ptl_nid_t>(other.id >> 32);
  peer.phys.pid = static_cast<ptl_pid_t>(other.id);
  process.put(peer, sizeof buffer);
  process.expect(PTL_EVENT_PUT);
  mine.rss_peer_mib = resident_mib();

  sleep_s(settle_s);
  const double duration_s = options.duration_ms > 0 ? options.duration_ms * 1e-3 : 2.0;
  const double spent_before = processor_time_s();
  sleep_s(duration_s);
  mine.cpu_percent = (processor_time_s() - spent_before) / duration_s * 100;
  mine.ready = 2;
  wait_until([&] { return other.ready >= 2; }, "the other process to end its rest");
}

}  // namespace

void measure_idle(const Options& options) {
  auto* reports = static_cast<Report*>(allocate_shared(2 * sizeof(Report)));
  join_children(fork_children(2, [&](int index) { run(index, reports, options); }));
  std::printf(
      "{\"cpu_percent\": %.4f, \"rss_before_mib\": %.2f, \"rss_interface_mib\": %.2f, "
      "\"rss_peer_mib\": %.2f}\n",
      (reports[0].cpu_percent + reports[1].cpu_percent) / 2, reports[0].rss_before_mib,
      reports[0].rss_interface_mib, reports[0].rss_peer_mib);
}

}  // namespace probe
