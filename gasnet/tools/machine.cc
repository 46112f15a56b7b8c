/* machine.cc: queries of the tools about the process and its machine. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>

#include "tools/headers.h"

const char* gasnett_exe_name() {
  static const std::string& name = *[] {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return new std::string(path, length > 0 ? static_cast<size_t>(length) : 0);
  }();
  return name.c_str();
}

const char* gasnett_gethostname() {
  static const std::string& name = *[] {
    char text[256] = "";
    gethostname(text, sizeof text - 1);
    return new std::string(text);
  }();
  return name.c_str();
}

int gasnett_cpu_count() {
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? static_cast<int>(count) : 0;
}

uint64_t gasnett_getPhysMemSz(int fail_fatal) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) {
    if (fail_fatal) gasnett_fatalerror_nopos("the size of the memory is not known");
    return 0;
  }
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
}

int gasnett_set_affinity(int rank) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return errno;
  const int count = CPU_COUNT(&allowed);
  if (count == 0 || rank < 0) return EINVAL;
  int wanted = rank % count;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || wanted-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 ? 0 : errno;
  }
  return EINVAL;
}

int gasnett_maximize_rlimit(int res, const char* name) {
  const std::string key = std::string("GASNET_MAXIMIZE_") + name;
  if (!gasnett_getenv_yesno_withdefault(key.c_str(), 1)) return 1;
  rlimit limit;
  if (getrlimit(static_cast<__rlimit_resource_t>(res), &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(static_cast<__rlimit_resource_t>(res), &limit) == 0;
}

int gasnett_maximize_rlimits() {
  constexpr struct {
    int resource;
    const char* name;
  } kLimits[] = {{RLIMIT_CPU, "RLIMIT_CPU"},
                 {RLIMIT_DATA, "RLIMIT_DATA"},
                 {RLIMIT_STACK, "RLIMIT_STACK"},
                 {RLIMIT_RSS, "RLIMIT_RSS"},
                 {RLIMIT_AS, "RLIMIT_AS"}};
  int all = 1;
  for (const auto& limit : kLimits) all &= gasnett_maximize_rlimit(limit.resource, limit.name);
  return all;
}

const char* gasnett_performance_warning_str() {
#ifdef GASNET_DEBUG
  return "        debugging checks (LINTEL_GASNET_DEBUG)\n";
#else
  return "";
#endif
}

uint64_t gasnett_release_version() {
  return uint64_t{GASNET_RELEASE_VERSION_MAJOR} * 1000000 + GASNET_RELEASE_VERSION_MINOR * 10000 +
         GASNET_RELEASE_VERSION_PATCH;
}

const char* gasnett_release_version_str() { return _STRINGIFY(GASNETI_RELEASE_VERSION); }

// The program ident finds them.
#ifdef GASNETI_TOOLS_ALONE
GASNETT_IDENT(gasneti_ident_configuration, "$GASNetToolsConfig: " GASNETT_CONFIG_STRING " $");
#else
GASNETT_IDENT(gasneti_ident_configuration, "$GASNetConfig: " GASNET_CONFIG_STRING " $");
#endif
GASNETT_IDENT(gasneti_ident_build, "$GASNetBuild: " GASNETI_BUILD_ID " " GASNETI_SYSTEM_TUPLE " $");

// Defined only in this form of the library: GASNETI_TOOLS_LINK_NAME.
extern "C" {
#ifdef GASNETI_TOOLS_ALONE
const int GASNETI_TOOLS_LINK_NAME = 1;
#else
const int GASNETI_LINK_NAME = 1;
#endif
}
