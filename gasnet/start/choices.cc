/* choices.cc: reading the variables of choices.h. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "start/choices.h"

#include <strings.h>
#include <unistd.h>

#include <initializer_list>
#include <string>

#include "tools/headers.h"

namespace lintel::gasnet {
namespace {

/** The index of the value among the words. The first word is the default. */
uint32_t choice(const char* key, std::initializer_list<const char*> words) {
  const char* const value = gasnett_getenv_withdefault(key, *words.begin());
  uint32_t place = 0;
  std::string all;
  for (const char* const word : words) {
    if (!strcasecmp(value, word)) return place;
    ++place;
    all += all.empty() ? word : std::string(", ") + word;
  }
  gasnett_fatalerror_nopos("%s=%s: give one of %s", key, value, all.c_str());
}

}  // namespace

uint32_t host_detection() {
  return choice("GASNET_HOST_DETECT", {"conduit", "gethostid", "hostname"});
}

uint64_t host_key(uint32_t detection) {
  if (detection == 1) return static_cast<uint64_t>(gethostid());
  uint64_t hash = 14695981039346656037u;
  for (const char* c = gasnett_gethostname(); *c; ++c)
    hash = (hash ^ static_cast<unsigned char>(*c)) * 1099511628211u;
  return hash;
}

void check_choices() {
  choice("GASNET_BARRIER", {"DISSEM", "AMDISSEM", "RDMADISSEM", "AMCENTRAL"});
  const int64_t scratch = gasnett_getenv_int_withdefault("GASNET_COLL_SCRATCH_SIZE", 0, 1);
  if (scratch < 0)
    gasnett_fatalerror_nopos("GASNET_COLL_SCRATCH_SIZE=%lld: give a size from 0 on",
                             static_cast<long long>(scratch));
}

}  // namespace lintel::gasnet
