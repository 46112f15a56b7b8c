/* pid_blocks.cc: abstract sockets, and interfaces that are opened to see whether a pid is in use.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "spawner/pid_blocks.h"

#include <portals4.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace lintel::gasnet {
namespace {

/* Portals pids below 1024 may be chosen freely. */
constexpr unsigned int kFirstPid = 8;
constexpr unsigned int kLastPid = 1023;
constexpr unsigned int kBlock = 8;

enum class Holder { this_process, this_user, another_user };

/** Reserves a block, or says who has. The kernel knows the user of a socket that listens. */
Holder take_block(unsigned int first) {
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return Holder::this_user;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length =
      std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "gasnetrun-pids-%u", first);
  const auto bytes =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  if (bind(descriptor, name, bytes) == 0 && listen(descriptor, SOMAXCONN) == 0)
    return Holder::this_process;
  ucred holder{};
  socklen_t size = sizeof holder;
  const bool is_known = connect(descriptor, name, bytes) == 0 &&
                        getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0;
  close(descriptor);
  return is_known && holder.uid == geteuid() ? Holder::this_user : Holder::another_user;
}

/** Writes those of the pids that no process uses, at most `count`. A process initialises Portals
 * only once, so this runs in a child. */
void write_unused(const std::vector<unsigned int>& pids, size_t count, int to) {
  if (PtlInit() != PTL_OK) return;
  for (const unsigned int pid : pids) {
    ptl_handle_ni_t interface;
    if (count == 0) break;
    if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, pid, nullptr, nullptr,
                  &interface) != PTL_OK)
      continue;
    PtlNIFini(interface);
    if (write(to, &pid, sizeof pid) != sizeof pid) break;
    --count;
  }
  PtlFini();
}

/** Adds unused pids. They are not reserved, so their order is random: another job should not find
 * the same ones. */
void add_unused(std::vector<unsigned int> candidates, size_t count,
                std::vector<unsigned int>& pids) {
  std::shuffle(candidates.begin(), candidates.end(), std::random_device());
  int ends[2];
  if (pipe(ends) != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    write_unused(candidates, count, ends[1]);
    std::exit(0);
  }
  close(ends[1]);
  unsigned int pid = 0;
  while (child > 0 && read(ends[0], &pid, sizeof pid) == sizeof pid) pids.push_back(pid);
  close(ends[0]);
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::vector<unsigned int> take_pids(unsigned int count) {
  std::vector<unsigned int> pids;
  std::vector<unsigned int> doubtful;
  for (unsigned int first = kFirstPid; first <= kLastPid && pids.size() < count; first += kBlock) {
    const Holder holder = take_block(first);
    if (holder == Holder::this_user) continue;
    std::vector<unsigned int>& into = holder == Holder::this_process ? pids : doubtful;
    for (unsigned int pid = first; pid < first + kBlock; ++pid) into.push_back(pid);
  }
  if (pids.size() < count && pids.size() + doubtful.size() >= count)
    add_unused(std::move(doubtful), count - pids.size(), pids);
  pids.resize(std::min<size_t>(pids.size(), count));
  return pids;
}

}  // namespace lintel::gasnet
