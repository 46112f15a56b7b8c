// Two hosts, which are network namespaces; removed with the object. Needs root and iproute2.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "support/ethernet.h"

namespace lintel::test {

class HostPair {
 public:
  HostPair(const HostPair&) = delete;
  HostPair& operator=(const HostPair&) = delete;
  ~HostPair() {
    for (int host = 0; host < 2; ++host)
      static_cast<void>(run_command("ip netns del " + name(host)));
  }
  // False: this kernel or container does not permit what the test needs.
  [[nodiscard]] bool ready() const { return ready_; }
  // The calling thread is on that host from now on.
  void enter(int host) const {
    const int fd = open(("/run/netns/" + name(host)).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(setns(fd, CLONE_NEWNET), 0);
    close(fd);
    ASSERT_TRUE(await_links());
  }

 protected:
  // `purpose`: part of the names of the namespaces.
  explicit HostPair(std::string purpose) : purpose_(std::move(purpose)) {
    for (int host = 0; host < 2; ++host)
      require(run_command("ip netns add " + name(host)) && in(host, "link set lo up"));
  }
  void require(bool done) { ready_ = ready_ && done; }
  // Joins both hosts by a veth, which has that name on either.
  void join(const std::string& cable) {
    require(in(0, "link add " + cable + " type veth peer name " + cable + " netns " + name(1)));
  }
  [[nodiscard]] std::string name(int host) const {
    return "lintel-" + purpose_ + "-" + std::to_string(owner_) + "-" + std::to_string(host);
  }
  // Runs `ip` with that command on a host.
  [[nodiscard]] bool in(int host, const std::string& command) const {
    return run_command("ip -n " + name(host) + " " + command);
  }

 private:
  const std::string purpose_;
  const pid_t owner_ = getpid();
  bool ready_ = true;
};

}  // namespace lintel::test
