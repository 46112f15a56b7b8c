// The example for a new transport: all that the contract (src/transport/transport.h) demands, and
// nothing that makes it fast. Its processes are interfaces of one process; a mutex guards the
// messages that wait. The other functions of the contract have defaults, which say what a transport
// lacks: access to memory of peers, notice of their death, sleep with timers.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "transport/transport.h"

namespace lintel::test {

class ExampleTransport final : public Transport {
 public:
  explicit ExampleTransport(ProcessId id) : id_(id) { all()[id.pid] = this; }
  ~ExampleTransport() override { all().erase(id_.pid); }

  // Longer messages are divided by the core into messages of kind data.
  [[nodiscard]] const Capabilities& capabilities() const noexcept override {
    static constexpr Capabilities offers{.name = "example",
                                         .max_eager_bytes = 4096,
                                         .remote_access = false,
                                         .remote_asynchronous = false,
                                         .remote_threshold_bytes = 0};
    return offers;
  }
  [[nodiscard]] Link* connect(ProcessId peer, std::string* reason) override {
    if (all().contains(peer.pid)) return &link_to(peer);
    if (reason != nullptr) *reason = "there is no such process";
    return nullptr;
  }
  // Processes here have no successors with the same address.
  [[nodiscard]] uint64_t incarnation(Link&) const noexcept override { return 1; }

  [[nodiscard]] SendStatus send(Link& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override {
    Message message{id_, header, {}};
    for (unsigned i = 0; i < count; ++i)
      message.payload.insert(message.payload.end(), pieces[i].base,
                             pieces[i].base + pieces[i].length);
    ExampleTransport& target = *all().at(link.peer.pid);
    {
      const std::lock_guard guard(target.mutex_);
      if (target.waiting_.size() == most_waiting) return SendStatus::queue_full;
      target.waiting_.push_back(std::move(message));
    }
    target.doorbell_->ring_if_sleeping();
    return SendStatus::sent;
  }

  unsigned poll(MessageSink& sink, unsigned budget) noexcept override {
    for (unsigned count = 0; count < budget; ++count) {
      Message message;
      {
        const std::lock_guard guard(mutex_);
        if (waiting_.empty()) return count;
        message = std::move(waiting_.front());
        waiting_.pop_front();
      }
      Link& link = link_to(message.from);
      if (announced_.insert(&link).second) link.context = sink.on_new_link(link);
      const InboundMessage inbound{message.header, message.payload.data(),
                                   static_cast<uint32_t>(message.payload.size())};
      sink.on_messages(link, &inbound, 1);
    }
    return budget;
  }

  void set_doorbell(Doorbell& doorbell) noexcept override { doorbell_ = &doorbell; }
  // What waits already rang no doorbell. Senders that found no room are not woken: they try again.
  [[nodiscard]] bool arm(bool blocked_senders) noexcept override {
    const std::lock_guard guard(mutex_);
    return waiting_.empty() && !blocked_senders;
  }
  [[nodiscard]] std::string describe() const override { return "interfaces of one process"; }

 private:
  struct Message {
    ProcessId from;
    MessageHeader header;
    std::vector<std::byte> payload;
  };
  static constexpr size_t most_waiting = 16;

  static std::map<uint32_t, ExampleTransport*>& all() {
    static std::map<uint32_t, ExampleTransport*> instances;
    return instances;
  }
  // Any thread. Links last as long as the transport.
  Link& link_to(ProcessId peer) {
    const std::lock_guard guard(mutex_);
    std::unique_ptr<Link>& link = links_[peer.pid];
    if (link == nullptr) {
      link = std::make_unique<Link>();
      link->peer = peer;
    }
    return *link;
  }

  const ProcessId id_;
  Doorbell* doorbell_ = nullptr;
  std::set<Link*> announced_;  // the poller's
  std::mutex mutex_;
  std::deque<Message> waiting_;
  std::map<uint32_t, std::unique_ptr<Link>> links_;
};

}  // namespace lintel::test
