// Interface of the module verbs: only the module needs libibverbs, not libportals. Set-up path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "registration/registration.h"
#include "reliable/faulty_link.h"
#include "reliable/reliable_transport.h"
#include "transport/open_status.h"
#include "transport/transport.h"

namespace lintel {

// The wanted port, and the marks of its packets.
struct VerbsPortWish {
  std::string device{};                // "name" or "name:port"; empty: any
  std::vector<std::string> further{};  // such names of further ports, for datagrams
  unsigned most_ports = 1;             // with others that are active, if none is named
  uint32_t local_rank = 0;             // processes of a node begin with different ports
  uint32_t nid = 0;                    // preferred: the port that has this IPv4 address; 0: none
  int gid_index = -1;                  // negative: chosen by type
  uint16_t pkey = 0xffff;              // partition, its value
  uint8_t service_level = 0;           // 0 to 15
  uint8_t traffic_class = 0;           // value for the GRH, or the IP header
  const char* reason = "named by PTL_VERBS_DEVICE";  // of `device`
};

// A port that can be used.
struct VerbsPort {
  uint32_t nid = 0;  // IPv4 address of the port; 0: it has none
  std::string name;  // "rxe0:1"
  std::string text;  // description in words
};

struct ConnectedSettings {
  uint32_t max_rc = 1024;  // connected queue pairs at most; 0: everything as datagrams
  uint32_t receive_buffers = 512;
  uint32_t eager_bytes = 4096;                      // payload of one message
  uint64_t rc_idle_ns = 10'000'000'000;             // unused connections are given up after this
  RegistrationCache* registration_cache = nullptr;  // lives as long as the process
};

struct VerbsSettings : ConnectedSettings {
  ProcessId id;  // identifier of this process: `nid` is an address of this node
  VerbsPortWish port;
  ReliableSettings reliable;
  Faults faults;  // PTL_FAULTS
};

struct VerbsModule {
  // Finds the port that would be used, and closes it again. False: `reason` is a sentence that says
  // why there is none. Thread-safe.
  bool (*examine)(const VerbsPortWish& wish, VerbsPort& port, std::string& reason);
  // `reason` explains what is not `opened`. Thread-safe.
  OpenStatus (*open)(const VerbsSettings& settings, std::unique_ptr<Transport>& transport,
                     std::string& reason);
};

}  // namespace lintel
