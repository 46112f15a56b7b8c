/* neighbourhood.h: the processes that map each other's memory. Set-up path.
 *
 * A neighbourhood is a group of at most GASNET_SUPERNODE_MAXSIZE processes of one host, in the
 * order of ranks. Its processes share memory that the first of them provides: a control block, and
 * the segments that they attach.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_NEIGHBOURHOOD_H
#define LINTEL_GASNET_JOB_NEIGHBOURHOOD_H

#include <atomic>
#include <cstdint>
#include <vector>

#include "job/shared_memory.h"
#include "tools/headers.h"

namespace lintel::gasnet {

/* Used by exit/orderly_end.h. */
constexpr unsigned int kEndPhases = 2;
constexpr unsigned int kEndRounds = 32;

constexpr gex_Rank_t kMostNeighbours = 4096;
constexpr unsigned int kGathers = 4;
constexpr size_t kRecordBytes = 48;

/** The state that the processes of a neighbourhood share. It is in shared memory, so its layout is
 * fixed. */
struct ControlBlock {
  /* kControlVersion. The first process that uses the memory writes it. */
  std::atomic<uint32_t> version;
  /* Number of members that have arrived at the barrier. */
  std::atomic<uint32_t> arrived;
  /* The exit code of the job with kExitDecided, or 0. A futex. */
  std::atomic<uint32_t> exit_word;
  /* Bytes of the environment of rank 0, which follows at kEnvironmentOffset. */
  std::atomic<uint32_t> environment_bytes;
  /* Written by puts of other neighbourhoods: the same as exit_word, and arrivals at the end. */
  std::atomic<uint64_t> remote_exit_word;
  std::atomic<uint64_t> end_arrivals[kEndPhases][kEndRounds];
  /* Number of members that have reached each phase of the end, and whether all processes have.
   * Futexes. */
  std::atomic<uint32_t> end_members[kEndPhases];
  std::atomic<uint32_t> end_is_reached[kEndPhases];
  /* Number of times that all have passed the barrier. A futex. */
  std::atomic<uint32_t> generation;
  /* Nonzero for members that have announced their end, by index. */
  std::atomic<uint8_t> finished[kMostNeighbours];
  /* Sizes of the segments that members attach, by index. */
  std::atomic<uint64_t> segment_bytes[kMostNeighbours];
  /* Number of processes that have mapped memory of the launcher. */
  std::atomic<uint32_t> uses;
  /* Descriptor of the memory for segments, in the first member; -1 if there is none. */
  std::atomic<int32_t> segments_descriptor;
  /* The records of gather(), by number and by index. */
  char records[kGathers][kMostNeighbours][kRecordBytes];
};
constexpr uint32_t kControlVersion = 2;
static_assert(offsetof(ControlBlock, version) == 0);
static_assert(offsetof(ControlBlock, exit_word) == 8);
static_assert(offsetof(ControlBlock, remote_exit_word) == 16);
static_assert(offsetof(ControlBlock, end_arrivals) == 24);
static_assert(sizeof(ControlBlock) == 823864);
constexpr size_t kEnvironmentOffset = 835584;
static_assert(sizeof(ControlBlock) <= kEnvironmentOffset);
constexpr size_t kControlBytes = kEnvironmentOffset + (size_t{16} << 20);
/* Behind the control block, for each member: memory for active messages. Pages that are not used
 * take no memory. */
constexpr size_t kNearBytes = size_t{128} << 10;
constexpr uint32_t kExitDecided = 1u << 31;
constexpr uint32_t kExitByFailure = 1u << 30; /* exit of a process that no longer takes part */

/** Behind all of those, for each member: memory for collectives. Its size grows with the number of
 * members, up to a limit. Pages that are not used take no memory. */
constexpr size_t collective_bytes(size_t members) {
  return (size_t{64} << 10) + (members < 64 ? members : 64) * (size_t{16} << 10);
}

/** Bytes of the memory that a neighbourhood of so many members shares. */
constexpr size_t control_bytes(size_t members) {
  return kControlBytes + members * (kNearBytes + collective_bytes(members));
}

class Neighbourhood {
 public:
  /** Maps memory of the launcher that is for all processes of the job. They are one neighbourhood
   * from now on, until divide(). All processes of the job get the same result.
   * @return false if the launcher gives no memory, or another program of the job has used it. */
  bool use_memory_of_launcher();
  /** Computes the groups of all hosts. Collective after use_memory_of_launcher().
   * @param largest  processes in a group, 0 for any number. */
  void divide(gex_Rank_t largest);
  /** Makes memory for a control block, for the case that this process becomes the first member.
   * @param members  the most that there can be.
   * @return its descriptor, which other members pass to map_control(). */
  int provide_control(size_t members);
  /** Maps the control block of the first member, unless it is in memory of the launcher.
   * @param process_ids  by index of member.
   * @param descriptor   of the first member. Not used after use_memory_of_launcher(). */
  void map_control(const std::vector<int>& process_ids, int descriptor);
  /** Maps memory for the segments of all members. One mapping holds all of them, however many
   * neighbours there are. Collective. No process may touch the memory before the call has returned
   * in all members.
   * @param bytes      for this process.
   * @param addresses  gets the address of the segment of each member in this process.
   * @return false if there is no address space; errno says why. */
  bool map_segments(uintptr_t bytes, std::vector<char*>& addresses);
  /** To be called once map_segments() has returned in all members. */
  void close_segments() {
    memory_.close_descriptor();
    segments_.close_descriptor();
  }

  const std::vector<gex_Rank_t>& ranks() const { return ranks_; }
  gex_Rank_t count() const { return static_cast<gex_Rank_t>(ranks_.size()); }
  /** Index of this process among ranks(). */
  gex_Rank_t index() const { return index_; }
  bool is_first() const { return index_ == 0; }
  /** Number of the neighbourhood of a rank. They are counted from 0, by their first rank. */
  gex_Rank_t number_of(gex_Rank_t rank) const { return numbers_[rank]; }
  gex_Rank_t number_of_neighbourhoods() const { return static_cast<gex_Rank_t>(firsts_.size()); }
  /** The first rank of a neighbourhood. */
  gex_Rank_t first_of(gex_Rank_t neighbourhood) const { return firsts_[neighbourhood]; }
  const std::vector<int>& process_ids() const { return process_ids_; }
  ControlBlock& control() const { return *control_; }
  char* environment_text() const;
  /** kNearBytes of a member, zeros at first. */
  void* near_memory(gex_Rank_t member) const;
  /** collective_bytes() of a member, zeros at first. */
  void* collective_memory(gex_Rank_t member) const;
  /** Waits for all members. The thread sleeps meanwhile. */
  void barrier();
  /** Whether all processes of the job are members, and the control block is mapped. */
  bool is_whole_job() const { return control_ && firsts_.size() == 1; }
  /** Exchanges records: each member gets those of all. Collective, once for each number.
   * @param number   below kGathers.
   * @param bytes    of a record, kRecordBytes at most.
   * @param records  gets the records in the order of members. */
  void gather(unsigned int number, const void* mine, size_t bytes, char* records);
  /** Both halves of gather(), which does them before and after a barrier of the members. */
  void show(unsigned int number, const void* mine, size_t bytes);
  void collect(unsigned int number, size_t bytes, char* records) const;

 private:
  void leave_memory_of_launcher();
  /** The program ends if another process has given the memory another layout. */
  void check_version();

  std::vector<gex_Rank_t> ranks_;
  gex_Rank_t index_ = 0;
  std::vector<gex_Rank_t> numbers_;
  std::vector<gex_Rank_t> firsts_;
  std::vector<int> process_ids_;
  SharedMemory memory_of_launcher_; /* mapped while the control block is in it */
  std::vector<int> descriptors_;    /* control blocks, by rank; if all have left that memory */
  SharedMemory memory_;             /* kept by the first member only, once it is known */
  SharedMemory segments_;           /* memory for segments, in the first member */
  ControlBlock* control_ = nullptr;
};

Neighbourhood& neighbourhood();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_NEIGHBOURHOOD_H
