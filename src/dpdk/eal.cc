// Starting EAL with arguments that fit the machine. Set-up path.
#include "dpdk/eal.h"

#include <rte_bus.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include "util/lock.h"
#include "util/new_descriptor.h"
#include "util/service_thread.h"
#include "util/text.h"

namespace lintel {

namespace {

Mutex mutex;
std::string complaint;
std::atomic<int> quiet{0};

ssize_t write_lines(void*, const char* text, size_t bytes) {
  std::string_view rest(text, bytes);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    const int level = rte_log_cur_msg_loglevel();
    const bool is_complaint = level <= static_cast<int>(RTE_LOG_ERR);
    if (is_complaint) {
      const LockGuard guard(mutex);
      // The first error of an attempt says most.
      if (quiet.load(std::memory_order_relaxed) == 0 || complaint.empty()) complaint = line;
    }
    const bool shown = is_complaint && quiet.load(std::memory_order_relaxed) == 0;
    log_message(shown ? LogLevel::info : LogLevel::debug, "dpdk: %.*s",
                static_cast<int>(line.size()), line.data());
  }
  return static_cast<ssize_t>(bytes);
}

}  // namespace

void redirect_eal_log() noexcept {
  cookie_io_functions_t functions{};
  functions.write = write_lines;
  FILE* const stream = fopencookie(nullptr, "w", functions);
  if (stream == nullptr) return;
  setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
  rte_openlog_stream(stream);
  rte_log_set_global_level(log_enabled(LogLevel::trace)   ? RTE_LOG_DEBUG
                           : log_enabled(LogLevel::debug) ? RTE_LOG_INFO
                                                          : RTE_LOG_ERR);
}

std::string last_eal_complaint() {
  const LockGuard guard(mutex);
  return complaint;
}

QuietEalLog::QuietEalLog() noexcept {
  if (quiet.fetch_add(1, std::memory_order_relaxed) != 0) return;
  const LockGuard guard(mutex);
  complaint.clear();
}
QuietEalLog::~QuietEalLog() { quiet.fetch_sub(1, std::memory_order_relaxed); }

namespace {

// Memory of DPDK without huge pages, in MiB. It is reserved at once and touched when it is used.
constexpr const char* plain_memory_mib = "256";
constexpr uint64_t wanted_huge_bytes = 64 << 20;
constexpr const char* with_huge_pages = "huge pages";
constexpr const char* without_huge_pages = "plain memory, as no huge pages are free";

struct Eal {
  Mutex mutex;
  bool tried = false;
  pid_t owner = 0;
  std::string failure;  // failure of the only attempt
  std::string memory;
  // EAL keeps and permutes what it was started with.
  std::vector<std::string> arguments;
  std::vector<char*> argument_pointers;
};

Eal& eal() {
  static Eal& instance = *new Eal;
  return instance;
}

uint64_t free_huge_bytes() {
  uint64_t bytes = 0;
  std::error_code ignored;
  for (const auto& size :
       std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", ignored)) {
    uint64_t pages = 0;
    uint64_t page_kib = 0;
    const Stream file = open_for_reading((size.path() / "free_hugepages").c_str());
    if (file == nullptr || std::fscanf(file.get(), "%" SCNu64, &pages) != 1) continue;
    const std::string name = size.path().filename();  // hugepages-2048kB
    std::istringstream(name.substr(std::min(name.find('-'), name.size() - 1) + 1)) >> page_kib;
    bytes += pages * page_kib * 1024;
  }
  return bytes;
}

// There are some, and this process may have them.
bool can_use_huge_pages() {
  if (free_huge_bytes() < wanted_huge_bytes) return false;
  void* const page = mmap(nullptr, 2 << 20, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (page == MAP_FAILED) return false;
  munmap(page, 2 << 20);
  return true;
}

// The processors that the caller may use, in the form of EAL's options.
std::string own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string list;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) {
        if (!list.empty()) list += ',';
        list += std::to_string(cpu);
      }
  return list.empty() ? "0" : list;
}

bool chooses_memory(const std::vector<std::string>& arguments) {
  static constexpr const char* options[] = {"--no-huge",    "--in-memory",  "--huge-dir",
                                            "--socket-mem", "--legacy-mem", "--file-prefix"};
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return std::any_of(std::begin(options), std::end(options), [&](const char* option) {
      return argument.compare(0, std::strlen(option), option) == 0;
    });
  });
}

std::vector<std::string> arguments_for(const EalSettings& settings, std::string& memory) {
  std::vector<std::string> extra;
  std::istringstream words(settings.arguments);
  for (std::string word; words >> word;) extra.push_back(word);

  std::vector<std::string> arguments = {"lintel", "--lcores=0@(" + own_processors() + ")",
                                        "--no-telemetry"};
  for (const std::string& port : settings.ports)
    if (is_bus_device(port)) arguments.insert(arguments.end(), {"-a", port});
  if (arguments.back() == "--no-telemetry") arguments.emplace_back("--no-pci");
  if (chooses_memory(extra)) {
    memory = "memory as PTL_DPDK_EAL says";
  } else if (can_use_huge_pages()) {
    arguments.push_back("--in-memory");
    memory = with_huge_pages;
  } else {
    for (const char* argument : {"--no-huge", "--no-shconf", "-m", plain_memory_mib})
      arguments.emplace_back(argument);
    arguments.push_back("--file-prefix=lintel-" + std::to_string(getpid()));
    memory = without_huge_pages;
  }
  arguments.insert(arguments.end(), extra.begin(), extra.end());
  return arguments;
}

struct Start {
  std::vector<char*>& arguments;
  int result = -1;
  int error = 0;

  void run() noexcept {
    result = rte_eal_init(static_cast<int>(arguments.size()) - 1, arguments.data());
    error = rte_errno;
  }
};

}  // namespace

bool start_eal(const EalSettings& settings, std::string& reason) {
  Eal& state = eal();
  const LockGuard guard(state.mutex);
  if (state.tried && state.owner != getpid())
    return explained(
        false, reason,
        "DPDK was started by the parent of this process, and a forked child cannot use it; fork "
        "before the first interface is opened");
  if (state.tried) return explained(state.failure.empty(), reason, state.failure);
  redirect_eal_log();
  state.arguments = arguments_for(settings, state.memory);
  std::string used;
  state.argument_pointers.clear();
  for (std::string& argument : state.arguments) {
    used.append(used.empty() ? "" : " ").append(argument);
    state.argument_pointers.push_back(argument.data());
  }
  state.argument_pointers.push_back(nullptr);
  const StandardDescriptorsTaken taken;
  Start start{state.argument_pointers};
  // EAL binds the thread that starts it.
  ServiceThread thread;
  if (!thread.start<&Start::run>(start, "ptl-eal", reason)) return false;
  thread.join();
  state.tried = true;
  state.owner = getpid();
  if (start.result < 0) {
    state.failure = std::string("DPDK does not start: ") + rte_strerror(start.error);
    if (const std::string why = last_eal_complaint(); !why.empty())
      state.failure.append(" (").append(why).append(")");
    state.failure.append("; it was started as: ").append(used);
    reason = state.failure;
    return false;
  }
  // Made even when nothing is put there; not empty if others share it.
  rmdir(rte_eal_get_runtime_dir());
  return true;
}

std::string describe_eal_memory() {
  const LockGuard guard(eal().mutex);
  if (!eal().memory.empty()) return eal().memory;
  return can_use_huge_pages() ? with_huge_pages : without_huge_pages;
}

bool is_bus_device(const std::string& port) noexcept {
  const std::string name = port.substr(0, port.find(','));
  if (name.compare(0, 10, "auxiliary:") == 0) return true;
  // [domain:]bus:device.function
  const size_t dot = name.rfind('.');
  const size_t colon = name.rfind(':', dot);
  if (dot == std::string::npos || colon == std::string::npos || dot + 2 != name.size())
    return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0 || c == ':' || c == '.'; });
}

thread_local constinit bool eal_knows_thread = false;

void register_new_eal_thread() noexcept {
  struct Registration {
    Registration() noexcept
        : registered(rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0) {}
    ~Registration() {
      if (registered) rte_thread_unregister();
    }
    bool registered;
  };
  static thread_local Registration registration;
  static_cast<void>(registration);
  eal_knows_thread = true;
}

}  // namespace lintel
