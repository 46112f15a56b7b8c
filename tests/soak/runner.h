// An endurance run: servers that live as long as it, clients that come and go, and what happens to
// them. Every process it starts ends with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "soak/traffic.h"

namespace lintel::soak {

struct Resources {
  uint64_t memory_kib = 0;  // resident, without what is shared
  unsigned descriptors = 0;
};

struct Scene {
  const char* name;
  unsigned clients;
  const char* transport;                // PTL_TRANSPORT of the clients
  const char* faults = "";              // PTL_FAULTS of the clients
  bool kills = false;                   // clients, and the server that may die
  bool stops = false;                   // SIGSTOP to anybody, for some tenths of a second
  bool may_fail = false;                // operations and starts
  std::function<void()> hardship = {};  // in each client
  std::function<void()> begin = {};     // in the runner
  std::function<void()> end = {};
};

class Runner {
 public:
  Runner(uint64_t seed, bool owns_shared_memory);
  ~Runner();

  void start_servers();
  void play(const Scene& scene, double seconds);
  // All clients have ended; the servers are as they were, and go.
  void finish();

  [[nodiscard]] unsigned problems() const noexcept { return problems_; }
  // The state from which on nothing may grow.
  void take_base();

 private:
  struct Client {
    unsigned slot;
    bool killed;
  };

  [[nodiscard]] uint64_t roll() noexcept;
  pid_t start(const std::function<int()>& body);
  void start_client(const Scene& scene, unsigned slot);
  void start_volatile_server();
  void disturb(const Scene& scene);
  void reap(const Scene& scene, bool restart);
  void end_clients(const Scene& scene);
  void progress(const char* scene);
  [[nodiscard]] Resources of_servers() const;
  void problem(const std::string& text);

  uint64_t state_;
  const bool owns_shared_memory_;
  Tally* tallies_;  // shared with the clients, one each
  std::vector<pid_t> servers_;
  pid_t volatile_server_ = 0;
  std::map<pid_t, Client> clients_;
  std::map<pid_t, double> stopped_until_s_;
  Resources base_;
  unsigned kills_ = 0;
  unsigned stops_ = 0;
  unsigned starts_ = 0;
  unsigned without_means_ = 0;
  unsigned problems_ = 0;
};

}  // namespace lintel::soak
