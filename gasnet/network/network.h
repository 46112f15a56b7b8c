/* network.h: the Portals interface of the process, and the use of its portal table entries. Set-up
 * path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_NETWORK_NETWORK_H
#define LINTEL_GASNET_NETWORK_NETWORK_H

#include <portals4_runtime.h>

namespace lintel::gasnet {

/* The same in all processes. High numbers, since another library such as MPI may use the same
 * interface. The run-time library uses 247 and 248. */
enum class PortalIndex : ptl_pt_index_t {
  kExchange = 236,   /* start-up and attach */
  kExit = 237,       /* the exit code of the job */
  kRequest = 238,    /* active message requests */
  kReply = 239,      /* active message replies */
  kSegment = 240,    /* bound segments, without a queue; match bits: endpoint index */
  kLongData = 241,   /* data of large Longs: the primordial segment, with events */
  kCollectives = 242 /* steps of collectives, with counters */
};

/** One matching, logically addressed interface. */
class Network {
 public:
  /** Joins the job and opens the interface. */
  void open();
  /** Collective, after this process has exposed what others may send to. A barrier; after it ranks
   * are known. PtlJobOpen would have another barrier, so its steps are done one by one. */
  void meet();
  bool is_open() const { return is_open_; }

  ptl_handle_ni_t interface() const { return interface_; }
  const ptl_ni_limits_t& limits() const { return limits_; }

  /** Allocates the entry.
   * @param queue  receives full events, or PTL_EQ_NONE. */
  void allocate(PortalIndex index, unsigned int options, ptl_handle_eq_t queue);
  ptl_handle_ct_t new_counter();
  ptl_handle_eq_t new_queue(ptl_size_t events);
  /** @return the handle; a failure is fatal. */
  ptl_handle_md_t bind(const ptl_md_t& md);
  ptl_handle_me_t append(PortalIndex index, const ptl_me_t& entry, void* user_ptr);

 private:
  bool is_open_ = false;
  bool has_map_ = false;
  ptl_handle_ni_t interface_ = PTL_INVALID_HANDLE;
  ptl_ni_limits_t limits_{};
};

Network& network();

inline ptl_pt_index_t number_of(PortalIndex index) { return static_cast<ptl_pt_index_t>(index); }
inline ptl_process_t process_of(ptl_rank_t rank) {
  ptl_process_t process{};
  process.rank = rank;
  return process;
}

/** Ends the program if a call of Portals failed. */
void check(int code, const char* call);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_NETWORK_NETWORK_H
