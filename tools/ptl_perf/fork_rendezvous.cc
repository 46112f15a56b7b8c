// Rendezvous of processes that one process forked. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/fork_rendezvous.h"

#include <sys/mman.h>

#include <cerrno>
#include <new>

#include "ptl_perf/errors.h"
#include "ptl_perf/shared_barrier.h"

namespace lintel::perf {

struct SharedBoard::Header {
  explicit Header(unsigned process_count) : barrier(process_count) {}
  SharedBarrier barrier;
};

struct SharedBoard::Slot {
  std::size_t used_bytes;
  std::byte data[max_exchange_bytes];
};

SharedBoard::SharedBoard(unsigned process_count)
    : process_count_(process_count),
      mapped_bytes_(4096 + sizeof(Slot) * process_count),
      header_(nullptr) {
  // Pages are taken only when touched, so generous slots cost nothing.
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Failure(ExitCode::failed,
                  std::string("cannot map ") + std::to_string(mapped_bytes_) +
                      " bytes shared between the processes: " + std::strerror(errno));
  }
  header_ = new (memory) Header(process_count);
}

SharedBoard::~SharedBoard() { munmap(header_, mapped_bytes_); }

void SharedBoard::barrier() { header_->barrier.wait(); }

SharedBoard::Slot& SharedBoard::slot(unsigned rank) const {
  auto* first = reinterpret_cast<std::byte*>(header_) + 4096;
  return *reinterpret_cast<Slot*>(first + sizeof(Slot) * rank);
}

void SharedBoard::write(unsigned rank, std::span<const std::byte> bytes) {
  if (bytes.size() > max_exchange_bytes) {
    throw Failure(ExitCode::failed, "the processes tried to exchange too much at once");
  }
  Slot& own = slot(rank);
  own.used_bytes = bytes.size();
  if (!bytes.empty()) std::memcpy(own.data, bytes.data(), bytes.size());
}

Bytes SharedBoard::read(unsigned rank) const {
  const Slot& other = slot(rank);
  return Bytes(other.data, other.data + other.used_bytes);
}

std::string ForkRendezvous::description() const {
  return std::to_string(size()) + " processes started on this machine";
}

std::vector<ptl_process_t> ForkRendezvous::exchange_identifiers(ptl_interface_t,
                                                                const ptl_process_t& own) {
  board_.write(rank_, std::as_bytes(std::span(&own, 1)));
  board_.barrier();
  std::vector<ptl_process_t> all(size());
  for (unsigned rank = 0; rank < size(); ++rank) {
    std::memcpy(&all[rank], board_.read(rank).data(), sizeof(ptl_process_t));
  }
  board_.barrier();
  return all;
}

std::vector<Bytes> ForkRendezvous::gather(std::span<const std::byte> own) {
  board_.write(rank_, own);
  board_.barrier();
  std::vector<Bytes> all;
  if (rank_ == 0) {
    for (unsigned rank = 0; rank < size(); ++rank) all.push_back(board_.read(rank));
  }
  board_.barrier();
  return all;
}

Bytes ForkRendezvous::broadcast(std::span<const std::byte> from_rank_0) {
  if (rank_ == 0) board_.write(0, from_rank_0);
  board_.barrier();
  Bytes bytes = board_.read(0);
  board_.barrier();
  return bytes;
}

}  // namespace lintel::perf
