#include "base/settings.h"

#include <unistd.h>

#include <algorithm>

namespace lintel::ofi {
namespace {

constexpr size_t least_usual_reserve = size_t{256} << 20;
constexpr size_t most_usual_reserve = size_t{8} << 30;

Settings current;

// A quarter of the memory of the machine.
size_t usual_reserve_bytes() noexcept {
  const auto pages = static_cast<size_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  return std::clamp(pages / 4 * static_cast<size_t>(sysconf(_SC_PAGESIZE)), least_usual_reserve,
                    most_usual_reserve);
}

void read(fi_provider& provider, const char* name, const char* help, size_t least, size_t most,
          size_t& value) noexcept {
  fi_param_define(&provider, name, FI_PARAM_SIZE_T, "%s (default: %zu)", help, value);
  size_t given = 0;
  if (fi_param_get_size_t(&provider, name, &given) == 0) value = std::clamp(given, least, most);
}

}  // namespace

void read_settings(fi_provider& provider) noexcept {
  read(provider, "eager_size", "Bytes of the longest message that is sent before it is received",
       1024, 1 << 20, current.eager_bytes);
  current.reserve_bytes = usual_reserve_bytes();
  read(provider, "unexpected_reserve",
       "Bytes of memory for unexpected messages; beyond these, senders wait", 1 << 20,
       size_t{1} << 40, current.reserve_bytes);
  read(provider, "events", "Events that a domain can hold", 1024, 1 << 22, current.events);
}

const Settings& settings() noexcept { return current; }

}  // namespace lintel::ofi
