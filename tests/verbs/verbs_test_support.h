// Processes with the transport over RDMA devices, all simulated in this one process, over the
// stand-in devices of support/fake_verbs.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "registration/watched_cache.h"
#include "support/deadlines.h"
#include "support/fake_verbs/fake_verbs.h"
#include "support/quiet_sink.h"
#include "util/guarded_memory.h"
#include "util/log.h"
#include "util/module.h"
#include "verbs/device.h"
#include "verbs/verbs_module.h"

namespace lintel::test {

inline constexpr uint32_t loopback_nid = 0x7f000001;

inline const VerbsModule& verbs_module() {
  return *static_cast<const VerbsModule*>(lintel_module.offer);
}

// Pids that concurrent tests do not use.
inline uint32_t next_pid() {
  static uint32_t counter = 0;
  return 2000 + (static_cast<uint32_t>(getpid()) * 37 + counter++) % 28000;
}

// One process: a transport, and a sink that stores arrived messages.
class VerbsProcess final : public QuietSink {
 public:
  struct Arrived {
    MessageHeader header;
    std::vector<std::byte> payload;
  };
  struct Ended {
    uint32_t token;
    RemoteResult result;
  };

  // Opens the transport with the first free pid. If `transport` is nullptr, `reason` says why.
  // `wanted_pid`: the pid of a former process, to become its successor.
  explicit VerbsProcess(const std::function<void(VerbsSettings&)>& change = {},
                        const WatchedCache::Settings& registrations = {}, uint32_t wanted_pid = 0)
      : cache(registrations), id{0, wanted_pid} {
    VerbsSettings settings;
    settings.reliable.uid = 1000;
    settings.reliable.peer_timeout_ns = 3'000'000'000 * slowdown;
    settings.registration_cache = &cache;
    settings.receive_buffers = 64;
    set_log_level(LogLevel::error);
    if (change) change(settings);
    for (int attempt = 0; attempt < 100; ++attempt) {
      settings.id = {loopback_nid, attempt == 0 && id.pid != 0 ? id.pid : next_pid()};
      reason.clear();
      status = verbs_module().open(settings, transport, reason);
      if (status != OpenStatus::pid_in_use) break;
    }
    id = settings.id;
  }

  [[nodiscard]] Link* connect(const VerbsProcess& peer) {
    std::string why;
    Link* const link = transport->connect(peer.id, &why);
    EXPECT_NE(link, nullptr) << why;
    return link;
  }
  [[nodiscard]] SendStatus send(Link& link, uint64_t number, const std::vector<std::byte>& payload,
                                uint8_t flags = 0) {
    MessageHeader header{};
    header.kind = MessageKind::put;
    header.flags = flags;
    header.hdr_data = number;
    header.set_length(payload.size());
    const Piece piece{const_cast<std::byte*>(payload.data()), payload.size()};
    return transport->send(link, header, &piece, payload.empty() ? 0 : 1);
  }
  unsigned poll() { return transport == nullptr ? 0 : transport->poll(*this, 64); }

  void* on_new_link(Link& link) noexcept override {
    links.push_back(&link);
    return this;
  }
  void on_messages(Link& link, const InboundMessage* messages, unsigned count) noexcept override {
    last_link = &link;
    for (unsigned i = 0; i < count; ++i)
      arrived.push_back({messages[i].header,
                         {messages[i].payload, messages[i].payload + messages[i].payload_length}});
    if (at_next_message) std::exchange(at_next_message, {})();
  }
  void on_peer_failed(Link&) noexcept override { ++failed; }
  void on_remote_done(Link& link, uint32_t token, RemoteResult result) noexcept override {
    ended.push_back({token, result});
    if (answers) answered = send(link, 0, {});
  }

  WatchedCache cache;
  std::unique_ptr<Transport> transport;
  OpenStatus status = OpenStatus::failed;
  std::string reason;
  ProcessId id{};
  std::deque<Arrived> arrived;
  std::vector<Ended> ended;
  std::vector<Link*> links;
  Link* last_link = nullptr;
  unsigned failed = 0;
  std::function<void()> at_next_message;  // called once
  bool answers = false;  // to the end of an access with a message, at once, as the core does
  SendStatus answered = SendStatus::sent;
};

// Polls all processes until the condition is true. Returns false after the deadline.
template <typename Condition>
[[nodiscard]] bool run_until(const std::vector<VerbsProcess*>& processes,
                             const Condition& condition,
                             std::chrono::milliseconds limit = wait_deadline) {
  const auto end = std::chrono::steady_clock::now() + limit;
  unsigned idle = 0;
  for (unsigned turn = 1; !condition(); ++turn) {
    unsigned work = 0;
    for (VerbsProcess* process : processes) work += process->poll();
    idle = work == 0 ? idle + 1 : 0;
    if (idle < 100 && turn % 1024 != 0) continue;
    if (std::chrono::steady_clock::now() > end) return false;
    if (idle >= 100) usleep(50);  // lets the threads that look up addresses run
  }
  return true;
}

// Exposes memory to the peer and announces that with a message without contents.
[[nodiscard]] inline Exposure tell_of(VerbsProcess& owner, VerbsProcess& peer, Link& link,
                                      const Piece* pieces, unsigned count, bool write,
                                      RemoteMemory* told) {
  const Exposure exposure = owner.transport->expose(link, pieces, count, write, 5, told);
  if (exposure.status != SendStatus::sent || exposure.count == 0) return exposure;
  const size_t arrived = peer.arrived.size();
  EXPECT_EQ(owner.send(link, 0, {}), SendStatus::sent);
  EXPECT_TRUE(run_until({&owner, &peer}, [&] { return peer.arrived.size() > arrived; }));
  if (peer.arrived.size() > arrived) peer.arrived.pop_back();
  return exposure;
}

// Bytes that depend on the number of the message and on their position.
inline std::vector<std::byte> bytes_of(uint64_t number, size_t length) {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::byte>(number * 31 + i * 7 + (i >> 8));
  return bytes;
}

// Numbered messages of various lengths. Each must arrive once and in order.
class Stream {
 public:
  Stream(VerbsProcess& from, VerbsProcess& to) : from_(from), to_(to), link_(from.connect(to)) {}

  [[nodiscard]] Link& link() { return *link_; }
  [[nodiscard]] uint64_t sent() const { return sent_; }
  [[nodiscard]] uint64_t received() const { return received_; }

  // Sends one more message. Returns false if there is no room now.
  bool send_one() {
    const SendStatus status = from_.send(*link_, sent_, bytes_of(sent_, length_of(sent_)));
    if (status == SendStatus::sent) {
      ++sent_;
      return true;
    }
    EXPECT_TRUE(status == SendStatus::queue_full || status == SendStatus::connecting)
        << "message " << sent_ << ": status " << static_cast<int>(status);
    return false;
  }

  // Checks the messages that have arrived.
  void check() {
    while (!to_.arrived.empty()) {
      const VerbsProcess::Arrived& message = to_.arrived.front();
      ASSERT_EQ(message.header.hdr_data, received_) << "lost, doubled or out of order";
      ASSERT_EQ(message.payload, bytes_of(received_, length_of(received_)));
      ++received_;
      to_.arrived.pop_front();
    }
  }

  // Sends `count` messages and waits until all have arrived.
  [[nodiscard]] bool pass(uint64_t count) {
    const uint64_t goal = sent_ + count;
    return run_until({&from_, &to_}, [&] {
      for (int burst = 0; burst < 8 && sent_ < goal; ++burst)
        if (!send_one()) break;
      check();
      return received_ == goal || testing::Test::HasFatalFailure();
    });
  }

 private:
  static size_t length_of(uint64_t number) { return number % 5 == 0 ? 0 : (number * 977) % 4000; }

  VerbsProcess& from_;
  VerbsProcess& to_;
  Link* link_;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
};

// Checks after each test that no object of the devices is in use, and that none was misused.
class VerbsTest : public testing::Test {
 protected:
  void SetUp() override { start(); }
  void TearDown() override {
    EXPECT_EQ(fake_verbs::in_use(), fake_verbs::InUse{});
    EXPECT_EQ(fake_verbs::violations(), std::vector<std::string>{});
  }
  static void start(const fake_verbs::Settings& settings = {}) { fake_verbs::reset(settings); }
};

// A device without a transport, for tests of its parts.
class VerbsDeviceTest : public VerbsTest {
 protected:
  void SetUp() override { open({}); }
  void TearDown() override {
    device_.reset();
    VerbsTest::TearDown();
  }
  void open(const fake_verbs::Settings& settings) {
    device_.reset();
    start(settings);
    std::string reason;
    device_ = VerbsDevice::open({}, reason);
    ASSERT_NE(device_, nullptr) << reason;
  }

  std::shared_ptr<VerbsDevice> device_;
};

}  // namespace lintel::test
