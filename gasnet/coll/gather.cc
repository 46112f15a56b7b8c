/* gather.cc: Bruck's all-gather over requests. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/gather.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "client/client.h"
#include "coll/handlers.h"
#include "endpoint/endpoint.h"
#include "job/mutex.h"
#include "network/poll.h"
#include "team/team.h"

namespace lintel::gasnet {
namespace {

/* Unit of an offset, so that it fits into an argument. */
constexpr size_t kOffsetUnit = 4096;
constexpr size_t kPartBytes = 2 * kOffsetUnit;

/** Identifies what a step of a call sends. */
struct Step {
  uint32_t team;
  uint32_t call;
  uint32_t number;
  bool operator<(const Step& other) const {
    return std::tie(team, call, number) < std::tie(other.team, other.call, other.number);
  }
};

/** The parts of a step that have arrived, in any order. */
struct Arrival {
  std::vector<char> bytes;
  size_t received = 0;
};

class Arrivals {
 public:
  void add(const Step& step, size_t offset, const void* part, size_t length) {
    const LockGuard lock(mutex_);
    Arrival& arrival = arrivals_[step];
    arrival.bytes.resize(std::max(arrival.bytes.size(), offset + length));
    std::memcpy(arrival.bytes.data() + offset, part, length);
    arrival.received += length;
  }
  /** @return false if fewer bytes have arrived. */
  bool take(const Step& step, char* to, size_t length) {
    const LockGuard lock(mutex_);
    const auto found = arrivals_.find(step);
    if (found == arrivals_.end() || found->second.received < length) return false;
    std::memcpy(to, found->second.bytes.data(), length);
    arrivals_.erase(found);
    return true;
  }

 private:
  Mutex mutex_;
  std::map<Step, Arrival> arrivals_ LINTEL_GASNET_GUARDED_BY(mutex_);
};

Arrivals& arrivals() {
  static Arrivals& instance = *new Arrivals;
  return instance;
}

void on_part(gex_Token_t, void* part, size_t length, gex_AM_Arg_t team, gex_AM_Arg_t call,
             gex_AM_Arg_t number, gex_AM_Arg_t offset) {
  arrivals().add(
      {static_cast<uint32_t>(team), static_cast<uint32_t>(call), static_cast<uint32_t>(number)},
      size_t{static_cast<uint32_t>(offset)} * kOffsetUnit, part, length);
}

}  // namespace

std::vector<char> gather_bytes(gex_TM_t tm, const void* mine, size_t bytes) {
  const gex_Rank_t rank = gex_TM_QueryRank(tm);
  const gex_Rank_t size = gex_TM_QuerySize(tm);
  const uint32_t call = tm->gathers++;
  // Block i is the record of rank (own + i) modulo size.
  std::vector<char> blocks(size * bytes);
  std::memcpy(blocks.data(), mine, bytes);
  uint32_t number = 0;
  for (size_t have = 1; have < size; have *= 2, ++number) {
    const auto below = static_cast<gex_Rank_t>((rank + size - have) % size);
    const size_t length = std::min(have, size - have) * bytes;
    for (size_t offset = 0; offset < length; offset += kPartBytes)
      gex_AM_RequestMedium4(
          tm, below, kGatherHandler, blocks.data() + offset, std::min(kPartBytes, length - offset),
          GEX_EVENT_NOW, 0, static_cast<gex_AM_Arg_t>(tm->number), static_cast<gex_AM_Arg_t>(call),
          static_cast<gex_AM_Arg_t>(number), static_cast<gex_AM_Arg_t>(offset / kOffsetUnit));
    const Step step{tm->number, call, number};
    while (!arrivals().take(step, blocks.data() + have * bytes, length)) wait_hint(poll());
  }
  std::rotate(blocks.begin(), blocks.end() - static_cast<ptrdiff_t>(rank * bytes), blocks.end());
  return blocks;
}

void start_gather() {
  the_client()->endpoint(0)->set_internal_handler(kGatherHandler,
                                                  reinterpret_cast<gex_AM_Fn_t>(on_part), "gather");
}

}  // namespace lintel::gasnet
