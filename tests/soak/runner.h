// An endurance run: servers that run all the time, clients that come and go, and the faults that
// disturb them. All processes that it starts end with it.
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
  uint64_t memory_kib = 0;   // resident, without shared memory
  uint64_t address_kib = 0;  // of virtual memory
  unsigned descriptors = 0;
};

struct Scene {
  const char* name;
  unsigned clients;
  const char* transport;                // PTL_TRANSPORT of the clients
  const char* faults = "";              // PTL_FAULTS of the clients
  bool kills = false;                   // kills clients and the volatile server
  bool kills_all = false;               // kills all clients, again and again
  bool stops = false;                   // SIGSTOP to any process, for some tenths of a second
  bool may_fail = false;                // operations and starts may fail
  std::function<void()> hardship = {};  // called in each client
  std::function<void()> begin = {};     // called in the runner
  std::function<void()> end = {};
};

class Runner {
 public:
  Runner(uint64_t seed, bool owns_shared_memory);
  ~Runner();

  void start_servers();
  void play(const Scene& scene, double seconds);
  // Called after the end of all clients. Checks that the servers are as before, and ends them.
  void finish();

  [[nodiscard]] unsigned problems() const noexcept { return problems_; }
  // Records the state of the servers, which must not grow afterwards.
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
  Tally* tallies_;  // shared with the clients; one for each
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
