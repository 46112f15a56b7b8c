// Exchange between the processes of a measurement, outside of the measurement itself: they find
// each other and agree on data. Set-up path. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace lintel::perf {

using Bytes = std::vector<std::byte>;

/** Maximum length of the data of one process in gather() or broadcast(). */
inline constexpr std::size_t max_exchange_bytes = std::size_t{4} << 20;

/** All processes call the collective functions in the same order. None is thread safe. */
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  virtual unsigned rank() const = 0;
  virtual unsigned size() const = 0;

  /** Returns how the processes were started, for the header of the output. */
  virtual std::string description() const = 0;

  /** Returns the pid for the interface; PTL_PID_ANY if the library chooses. */
  virtual ptl_pid_t requested_pid() const = 0;

  /** Collective, first of all: gives each process the physical identifiers of all, by rank.
   *  `own` is this process on `interface`, which is open. */
  virtual std::vector<ptl_process_t> exchange_identifiers(ptl_interface_t interface,
                                                          const ptl_process_t& own) = 0;

  /** The node of each rank, numbered from 0 in the order of their lowest ranks. */
  virtual std::vector<unsigned> nodes(const std::vector<ptl_process_t>& processes) const {
    std::map<ptl_nid_t, unsigned> numbers;
    std::vector<unsigned> nodes;
    nodes.reserve(processes.size());
    for (const ptl_process_t& process : processes) {
      nodes.push_back(numbers.try_emplace(process.phys.nid, static_cast<unsigned>(numbers.size()))
                          .first->second);
    }
    return nodes;
  }

  /** Collective: rank 0 gets what each rank gave, by rank; the others get nothing. */
  virtual std::vector<Bytes> gather(std::span<const std::byte> own) = 0;

  /** Collective: each process gets what rank 0 gave. */
  virtual Bytes broadcast(std::span<const std::byte> from_rank_0) = 0;

  /** Collective: no process returns before all have called. */
  virtual void barrier() = 0;

  /** A socket that is closed when the only other process ends; -1 if another part ends the test. */
  virtual int connection() const { return -1; }

  /** Collective, last of all: releases what exchange_identifiers() opened. */
  virtual void leave() = 0;

  template <class Value>
  Value broadcast_value(const Value& from_rank_0) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const Bytes bytes = broadcast(std::as_bytes(std::span(&from_rank_0, 1)));
    Value value{};
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  template <class Value>
  std::vector<Value> gather_value(const Value& own) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const std::vector<Bytes> all = gather(std::as_bytes(std::span(&own, 1)));
    std::vector<Value> values(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) std::memcpy(&values[i], all[i].data(), sizeof own);
    return values;
  }
};

}  // namespace lintel::perf
