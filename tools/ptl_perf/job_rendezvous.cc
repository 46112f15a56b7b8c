// Rendezvous of processes that someone else started. Set-up path.
//
// Each process exposes one list entry with a slot for every rank that may write to it: at rank 0
// all of them, elsewhere rank 0 alone. A message is a put into the writer's slot, its length and
// its place in the sequence in hdr_data, and is repeated until acknowledged, since the peer may
// not have started yet.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/job_rendezvous.h"

#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "ptl_perf/errors.h"
#include "ptl_perf/paths.h"

namespace lintel::perf {
namespace {

constexpr ptl_pt_index_t mailbox_index = 240;
constexpr unsigned retry_ms = 100;

}  // namespace

/** Portals objects through which the processes communicate; made when the interface is open. */
struct JobRendezvous::Mailbox {
  Mailbox(ptl_handle_ni_t opened, unsigned writers)
      : interface(opened),
        arrivals(allocate_event_queue(interface, 64 + 16 * writers)),
        acknowledgments(allocate_event_queue(interface, 64)),
        portal(interface, 0, arrivals.get(), mailbox_index) {
    bytes = max_exchange_bytes * writers;
    memory = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (memory == MAP_FAILED) throw Failure(ExitCode::failed, "no memory for the rendezvous");
    ptl_le_t le{};
    le.start = memory;
    le.length = bytes;
    le.ct_handle = PTL_CT_NONE;
    le.uid = PTL_UID_ANY;
    le.options = PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE | PTL_LE_EVENT_UNLINK_DISABLE;
    ptl_handle_le_t handle = PTL_INVALID_HANDLE;
    require(PtlLEAppend(interface, mailbox_index, &le, PTL_PRIORITY_LIST, nullptr, &handle),
            "PtlLEAppend");
    entry = ListEntry(handle);
    taken.resize(writers, 0);
  }

  ~Mailbox() {
    entry.reset();
    if (memory != MAP_FAILED) munmap(memory, bytes);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  ptl_handle_ni_t interface;
  EventQueue arrivals;
  EventQueue acknowledgments;
  PortalEntry portal;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  ListEntry entry;
  std::vector<std::uint32_t> taken;  // last message taken, by writer
  std::uint32_t sent = 0;            // last message sent (rank 0: to everybody)
  std::uintptr_t attempts = 0;

  /** Waits for the next message of each writer in [0, count); messages that were repeated although
   *  they had arrived are passed over. */
  std::vector<Bytes> take_from_all(unsigned count, const Bytes* own) {
    std::vector<Bytes> messages(taken.size());
    unsigned missing = count;
    if (own) {
      messages[0] = *own;
      --missing;
    }
    while (missing > 0) {
      ptl_event_t event{};
      const int code = PtlEQWait(arrivals.get(), &event);
      if (code != PTL_OK || event.ni_fail_type != PTL_NI_OK) {
        throw_event_failed("PtlEQWait", code, event);
      }
      if (event.type != PTL_EVENT_PUT) continue;
      const std::size_t writer = event.remote_offset / max_exchange_bytes;
      const auto number = static_cast<std::uint32_t>(event.hdr_data >> 32);
      if (writer >= taken.size() || number != taken[writer] + 1) continue;
      taken[writer] = number;
      const std::byte* slot = memory + writer * max_exchange_bytes;
      messages[writer].assign(slot, slot + (event.hdr_data & 0xffff'ffff));
      --missing;
    }
    return messages;
  }
};

JobRendezvous::JobRendezvous(const ptl_job_info_t& job) : job_(job) {
  if (job.size % 2 != 0) {
    throw Failure(ExitCode::usage, "the job has an odd number of processes, " +
                                       std::to_string(job.size) + "; ptl_perf works in pairs");
  }
}

JobRendezvous::~JobRendezvous() = default;

std::string JobRendezvous::description() const {
  const std::string how = job_.launcher == std::string("environment")
                              ? "named by PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP"
                              : "of job " + std::string(job_.name);
  return "rank " + std::to_string(rank()) + " of " + std::to_string(size()) + " processes " + how;
}

std::vector<ptl_process_t> JobRendezvous::exchange_identifiers(ptl_interface_t interface,
                                                               const ptl_process_t& own) {
  ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
  require(PtlNIInit(interface, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, own.phys.pid, nullptr, nullptr,
                    &handle),
          "PtlNIInit");
  processes_.resize(size());
  if (PtlJobPublish(handle) != PTL_OK ||
      PtlJobGetMap(handle, processes_.size(), processes_.data()) != PTL_OK) {
    throw Failure(ExitCode::usage, PtlJobError());
  }
  for (unsigned other = 0; other < size(); ++other)
    if (other != rank() && (rank() == 0 || other == 0))
      require_path(handle, processes_[other], other);
  mailbox_ = std::make_unique<Mailbox>(handle, rank() == 0 ? size() : 1);
  barrier();
  return processes_;
}

std::vector<unsigned> JobRendezvous::nodes(const std::vector<ptl_process_t>& processes) const {
  std::vector<unsigned> nodes(processes.size());
  for (unsigned rank = 0; rank < nodes.size(); ++rank) {
    if (PtlJobGetNode(rank, &nodes[rank]) != PTL_OK) throw Failure(ExitCode::failed, PtlJobError());
  }
  return nodes;
}

bool JobRendezvous::send(unsigned to, std::span<const std::byte> bytes, unsigned timeout_ms) {
  ptl_md_t md{};
  md.start = const_cast<std::byte*>(bytes.data());
  md.length = bytes.size();
  md.options = PTL_MD_EVENT_SEND_DISABLE;
  md.eq_handle = mailbox_->acknowledgments.get();
  md.ct_handle = PTL_CT_NONE;
  const MemoryDescriptor descriptor = bind_memory(mailbox_->interface, md);
  const std::uint64_t slot = rank() == 0 ? 0 : rank();
  const std::uintptr_t attempt = ++mailbox_->attempts;
  require(PtlPut(descriptor.get(), 0, bytes.size(), PTL_ACK_REQ, processes_[to], mailbox_index, 0,
                 slot * max_exchange_bytes, reinterpret_cast<void*>(attempt),
                 std::uint64_t{mailbox_->sent} << 32 | bytes.size()),
          "PtlPut");
  for (;;) {
    ptl_event_t event{};
    unsigned which = 0;
    const ptl_handle_eq_t queue = mailbox_->acknowledgments.get();
    const int code = PtlEQPoll(&queue, 1, timeout_ms, &event, &which);
    if (code == PTL_EQ_EMPTY) return false;  // no process answers there (spec 3.13.3)
    require(code, "PtlEQPoll");
    if (reinterpret_cast<std::uintptr_t>(event.user_ptr) != attempt) continue;
    return event.ni_fail_type == PTL_NI_OK;
  }
}

std::vector<Bytes> JobRendezvous::collect(std::span<const std::byte> own) {
  const Bytes mine(own.begin(), own.end());
  if (rank() == 0) return mailbox_->take_from_all(size(), &mine);
  ++mailbox_->sent;
  // The watchdog ends a wait for a process that never comes.
  while (!send(0, mine, 10 * retry_ms)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(retry_ms));
  }
  return {};
}

Bytes JobRendezvous::distribute(std::span<const std::byte> from_rank_0) {
  if (rank() != 0) return mailbox_->take_from_all(1, nullptr)[0];
  ++mailbox_->sent;
  for (unsigned to = 1; to < size(); ++to) {
    while (!send(to, from_rank_0, 10 * retry_ms)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(retry_ms));
    }
  }
  return Bytes(from_rank_0.begin(), from_rank_0.end());
}

std::vector<Bytes> JobRendezvous::gather(std::span<const std::byte> own) {
  if (own.size() > max_exchange_bytes) {
    throw Failure(ExitCode::failed, "the processes tried to exchange too much at once");
  }
  std::vector<Bytes> all = collect(own);
  distribute({});  // no process overwrites a slot that rank 0 still reads
  return all;
}

Bytes JobRendezvous::broadcast(std::span<const std::byte> from_rank_0) {
  collect({});
  return distribute(from_rank_0);
}

void JobRendezvous::barrier() {
  collect({});
  distribute({});
}

void JobRendezvous::leave() {
  const ptl_handle_ni_t interface = mailbox_->interface;
  mailbox_.reset();
  PtlNIFini(interface);
  PtlJobFini();
}

}  // namespace lintel::perf
