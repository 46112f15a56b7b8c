// Granting limits. Set-up path.
#include "core/objects/limits.h"

#include <algorithm>

namespace lintel {

namespace {

int grant_count(int desired, int fallback, int least, int most) noexcept {
  if (desired <= 0) return fallback;
  return std::clamp(desired, least, most);
}

ptl_size_t grant_bytes(ptl_size_t desired, ptl_size_t fallback, ptl_size_t least,
                       ptl_size_t most) noexcept {
  return desired == 0 ? fallback : std::clamp(desired, least, most);
}

constexpr unsigned all_features =
    PTL_TARGET_BIND_INACCESSIBLE | PTL_TOTAL_DATA_ORDERING | PTL_COHERENT_ATOMICS;

constexpr ptl_ni_limits_t defaults = {
    .max_entries = 1 << 20,
    .max_unexpected_headers = 1 << 20,
    .max_mds = 1 << 16,
    .max_eqs = 1 << 12,
    .max_cts = 1 << 18,
    .max_pt_index = 255,
    .max_iovecs = largest_iovecs,
    .max_list_size = 1 << 20,
    .max_triggered_ops = 1 << 20,
    .max_msg_size = largest_message_bytes,
    .max_atomic_size = largest_atomic_bytes,
    .max_fetch_atomic_size = largest_atomic_bytes,
    .max_waw_ordered_size = largest_ordered_bytes,
    .max_war_ordered_size = largest_ordered_bytes,
    .max_volatile_size = largest_volatile_bytes,
    .features = all_features,
};

}  // namespace

ptl_ni_limits_t grant_limits(const ptl_ni_limits_t* desired) noexcept {
  if (desired == nullptr) return defaults;
  const ptl_ni_limits_t& d = defaults;
  ptl_ni_limits_t g{};
  g.max_entries = grant_count(desired->max_entries, d.max_entries, 1, largest_entries);
  g.max_unexpected_headers = grant_count(desired->max_unexpected_headers, d.max_unexpected_headers,
                                         1, largest_unexpected_headers);
  g.max_mds = grant_count(desired->max_mds, d.max_mds, 1, largest_mds);
  g.max_eqs = grant_count(desired->max_eqs, d.max_eqs, 1, largest_eqs);
  g.max_cts = grant_count(desired->max_cts, d.max_cts, 1, largest_cts);
  g.max_pt_index = grant_count(desired->max_pt_index, d.max_pt_index, 249, largest_pt_index);
  g.max_iovecs = grant_count(desired->max_iovecs, d.max_iovecs, 1, largest_iovecs);
  g.max_list_size = grant_count(desired->max_list_size, d.max_list_size, 1, largest_entries);
  g.max_triggered_ops =
      grant_count(desired->max_triggered_ops, d.max_triggered_ops, 1, largest_triggered_ops);
  g.max_msg_size = grant_bytes(desired->max_msg_size, d.max_msg_size, 1, largest_message_bytes);
  // Zero says that no ordering is needed (spec 2.7.5). The minimum is granted all the same, since
  // 3.6.1 demands it and it costs nothing.
  g.max_waw_ordered_size =
      grant_bytes(desired->max_waw_ordered_size, 64, 64, largest_ordered_bytes);
  g.max_war_ordered_size =
      grant_bytes(desired->max_war_ordered_size, 64, 64, largest_ordered_bytes);
  // One atomic always carries the largest datatype.
  g.max_atomic_size =
      grant_bytes(desired->max_atomic_size, d.max_atomic_size, 512, largest_atomic_bytes);
  g.max_fetch_atomic_size = grant_bytes(desired->max_fetch_atomic_size, d.max_fetch_atomic_size,
                                        512, largest_atomic_bytes);
  g.max_volatile_size =
      grant_bytes(desired->max_volatile_size, d.max_volatile_size, 64, largest_volatile_bytes);
  g.features = all_features;
  return g;
}

}  // namespace lintel
