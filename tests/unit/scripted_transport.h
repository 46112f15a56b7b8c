// A transport that records what it is asked to send, and gives the answers that a test specifies.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "transport/transport.h"

namespace lintel::test {

class ScriptedTransport final : public Transport {
 public:
  struct Sent {
    MessageHeader header;
    std::vector<std::byte> payload;
  };
  struct Access {
    bool write;
    std::vector<Piece> local;
    std::vector<RemoteMemory> remote;
    uint32_t token;
  };

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return offers; }
  [[nodiscard]] Link* connect(ProcessId peer, std::string* reason) override {
    ++connects;
    if (!reaches) {
      *reason = "out of reach";
      return nullptr;
    }
    Link& link = links[peer.pid];
    link.peer = peer;
    return &link;
  }
  [[nodiscard]] uint64_t incarnation(Link&) const noexcept override { return process; }
  [[nodiscard]] SendStatus send(Link&, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override {
    if (status != SendStatus::sent) return status;
    Sent& message = sent.emplace_back(Sent{header, {}});
    for (unsigned i = 0; i < count; ++i)
      message.payload.insert(message.payload.end(), pieces[i].base,
                             pieces[i].base + pieces[i].length);
    return status;
  }
  [[nodiscard]] Exposure expose(Link& link, const Piece* pieces, unsigned count, bool write,
                                uint32_t cookie, RemoteMemory* out) noexcept override {
    if (!exposes) return {SendStatus::sent};
    return Transport::expose(link, pieces, count, write, cookie, out);
  }
  [[nodiscard]] RemoteResult remote_access(Link&, bool write, const Piece* local,
                                           unsigned local_count, const RemoteMemory* remote,
                                           unsigned remote_count,
                                           uint32_t token) noexcept override {
    accesses.push_back(
        {write, {local, local + local_count}, {remote, remote + remote_count}, token});
    const bool succeeds = access == nullptr || access(accesses.back());
    return {succeeds ? RemoteStatus::started : RemoteStatus::unsupported, 0};
  }
  [[nodiscard]] bool payloads_released(Link&, uint32_t mark) noexcept override {
    return mark <= released_mark;
  }
  unsigned poll(MessageSink& sink, unsigned) noexcept override {
    ++polls;
    if (hand_up) std::exchange(hand_up, nullptr)(sink);
    return std::exchange(arrived, 0);
  }
  [[nodiscard]] bool arm(bool blocked_senders) noexcept override {
    armed_for_senders = blocked_senders;
    return arms;
  }
  void disarm() noexcept override { ++disarms; }
  [[nodiscard]] int64_t sleep_limit_ns() noexcept override { return limit_ns; }
  void check_peers(MessageSink&, Link* const* watch, unsigned count) noexcept override {
    checked.assign(watch, watch + count);
    ++checks;
  }
  [[nodiscard]] std::string device() const override { return name_of_device; }
  [[nodiscard]] std::string describe() const override { return "scripted"; }

  Capabilities offers{.name = "scripted",
                      .max_eager_bytes = 8192,
                      .remote_access = false,
                      .remote_asynchronous = false,
                      .remote_threshold_bytes = 0};
  std::string name_of_device = "dev0";
  bool reaches = true;
  uint64_t process = 0;  // incarnation of all peers
  SendStatus status = SendStatus::sent;
  uint32_t released_mark = 0;
  unsigned arrived = 0;  // messages that the next poll() claims to have delivered
  std::function<void(MessageSink&)> hand_up;  // called once, by the next poll()
  bool arms = true;
  int64_t limit_ns = -1;

  bool exposes = true;
  std::function<bool(const Access&)> access;  // false: that access is not supported

  std::map<uint32_t, Link> links;  // by pid
  std::vector<Sent> sent;
  std::vector<Access> accesses;
  std::vector<Link*> checked;
  unsigned connects = 0;
  unsigned polls = 0;
  unsigned checks = 0;
  unsigned disarms = 0;
  bool armed_for_senders = false;
};

}  // namespace lintel::test
