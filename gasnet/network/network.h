/* network.h: the Portals interface of the process, and which portal table entry is for what. Set-up
 * path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_NETWORK_NETWORK_H
#define LINTEL_GASNET_NETWORK_NETWORK_H

#include <portals4_runtime.h>

namespace lintel::gasnet {

/* Fixed, the same in all processes, and high: another library, such as MPI, may use the same
 * interface. The run-time library has 247 and 248. */
enum class PortalIndex : ptl_pt_index_t {
  kExchange = 236,   /* start-up and attach */
  kExit = 237,       /* the exit code of the job */
  kRequest = 238,    /* active message requests */
  kReply = 239,      /* active message replies */
  kSegment = 240,    /* bound segments, without a queue; match bits: index of the endpoint */
  kLongData = 241,   /* the primordial segment again, with events: data of large Longs */
  kCollectives = 242 /* steps of collectives, with counters */
};

/** One matching, logically addressed interface. */
class Network {
 public:
  /** Joins the job and opens the interface. */
  void open();
  /** Collective, once what others may send to is there: a barrier, after which ranks are known. As
   * PtlJobOpen would have had a barrier of its own, the steps of it are done one by one. */
  void meet();
  bool is_open() const { return is_open_; }

  ptl_handle_ni_t interface() const { return interface_; }
  const ptl_ni_limits_t& limits() const { return limits_; }

  /** Allocates the entry.
   * @param queue  gets full events, or PTL_EQ_NONE. */
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
