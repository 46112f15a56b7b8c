// The registration cache of this process. Set-up path.
#include "registration/process_cache.h"

#include <pthread.h>
#include <unistd.h>

#include "registration/watched_cache.h"
#include "util/config.h"

namespace lintel {

namespace {

uint64_t half_of_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) / 2 *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

WatchedCache::Settings configured() {
  WatchedCache::Settings settings;
  settings.most_regions = static_cast<uint32_t>(config_u64(ConfigKey::registration_regions));
  settings.most_bytes = config_u64(ConfigKey::registration_bytes);
  if (settings.most_bytes == 0) settings.most_bytes = half_of_memory();
  settings.check = config_bool(ConfigKey::registration_check);
  return settings;
}

WatchedCache* the_cache = nullptr;

WatchedCache* make_cache() {
  the_cache = new WatchedCache(configured());
  pthread_atfork(nullptr, nullptr, [] { the_cache->after_fork_in_child(); });
  return the_cache;
}

}  // namespace

RegistrationCache& process_registration_cache() {
  static WatchedCache* const cache = make_cache();
  return *cache;
}

}  // namespace lintel
