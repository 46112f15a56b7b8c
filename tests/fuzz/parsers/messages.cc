// Messages of a peer for the core, with operations of both sides in progress: valid requests and
// answers, and others that no correct peer sends. The transport below is simulated. The input
// decides what it refuses, fails and finishes. The fuzzer `devices` has memory of an accelerator,
// and descriptions of that of the peer.
#include <portals4.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/library/library.h"
#include "core/operations/device_import.h"
#include "fuzz/parsers/input.h"
#include "fuzz/parsers/made_up_driver.h"
#include "memory_kind/driver_memory.h"
#include "util/config.h"
#include "util/log.h"

namespace lintel::fuzz {
namespace {

constexpr ProcessId own_id{1, 1};
constexpr unsigned most_steps = 200;
constexpr unsigned most_operations = 64;
constexpr size_t memory_bytes = 64 << 10;

#if defined(LINTEL_FUZZ_DEVICES)
constexpr bool has_device = true;
#else
constexpr bool has_device = false;
#endif

Input* input = nullptr;          // of the current run
MadeUpDriver* device = nullptr;  // if has_device

class MadeUpTransport final : public Transport {
 public:
  struct Started {
    Link* link;
    uint32_t token;
  };

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return offers_; }
  [[nodiscard]] Link* connect(ProcessId peer, std::string*) override {
    link.peer = peer;
    link.failure = {};
    return &link;
  }
  [[nodiscard]] uint64_t incarnation(Link&) const noexcept override { return 1; }
  [[nodiscard]] uint32_t process_of(Link&) const noexcept override {
    return has_device ? MadeUpDriver::peer_process : 0;
  }
  [[nodiscard]] SendStatus send(Link&, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override {
    if (fails) return SendStatus::peer_failed;
    // A peer may guess the cookie of a waiting message.
    if (cookies.size() < 256) cookies.push_back(header.cookie);
    if (refuses) return input->flag() ? SendStatus::queue_full : SendStatus::connecting;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; ++i) bytes += pieces[i].length;
    FUZZ_CHECK(bytes <= offers_.max_eager_bytes);
    if (header.kind == MessageKind::data_request && cookies.size() < 256)
      cookies.push_back(static_cast<uint32_t>(header.match_bits));
    return SendStatus::sent;
  }
  unsigned poll(MessageSink& sink, unsigned) noexcept override {
    if (!next) return 0;
    std::exchange(next, {})(sink);
    return 1;
  }
  [[nodiscard]] bool arm(bool) noexcept override { return true; }
  [[nodiscard]] std::string describe() const override { return "made up"; }

  // The messages that the next poll delivers.
  std::function<void(MessageSink&)> next;
  Link link;
  bool refuses = false;
  bool fails = false;
  std::vector<uint32_t> cookies;  // of sent messages
  std::vector<Started> started;

 private:
  [[nodiscard]] RemoteResult remote_access(Link& to, bool write, const Piece* local,
                                           unsigned local_count, const RemoteMemory*, unsigned,
                                           uint32_t token) noexcept override {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < local_count; ++i) {
      bytes += local[i].length;
      if (!write) std::memset(local[i].base, 0x5a, local[i].length);  // must be accessible
    }
    if (fails) return {RemoteStatus::peer_failed, 0};
    switch (input->below(6)) {
      case 0:
        return {RemoteStatus::unsupported, 0};
      case 1:
        return {RemoteStatus::remote_fault, 0};
      case 2:
        if (started.size() < 64) {
          started.push_back({&to, token});
          return {RemoteStatus::started, 0};
        }
        [[fallthrough]];
      case 3:
        if (!input->is_empty()) return {RemoteStatus::busy, 0};
        [[fallthrough]];
      default:
        return {RemoteStatus::done, bytes};
    }
  }

  Capabilities offers_{.name = "made up",
                       .max_eager_bytes = 8192,
                       .remote_access = true,
                       .remote_asynchronous = true,
                       .remote_threshold_bytes = 8192};
};

MadeUpTransport* transport = nullptr;

OpenedTransports open_transports(uint32_t, uint32_t) {
  OpenedTransports opened;
  auto made = std::make_unique<MadeUpTransport>();
  transport = made.get();
  opened.transports.push_back(std::move(made));
  opened.id = own_id;
  opened.status = OpenStatus::opened;
  return opened;
}

// The interface is opened once. Descriptors, entries and operations belong to one run.
NetworkInterface& interface() {
  static NetworkInterface* const opened = [] {
    setenv("PTL_PROGRESS", "caller", 1);
    setenv("PTL_LOG_LEVEL", "error", 1);
    FUZZ_CHECK(initialize_library() == PTL_OK);
    if (has_device) {
      auto driver = std::make_unique<MadeUpDriver>(input);
      device = driver.get();
      use_kind(*new DriverMemory(std::move(driver)));
    }
    NetworkInterface* made = nullptr;
    FUZZ_CHECK(open_interface(0, slot_matching, PTL_PID_ANY, nullptr, open_transports, &made) ==
               PTL_OK);
    return made;
  }();
  return *opened;
}

class Fuzzed {
 public:
  Fuzzed() : ni_(interface().handle()), memory_(memory_bytes) {
    transport->refuses = transport->fails = false;
    transport->cookies.clear();
    peer_.phys = {2, 2 + peers_used++ % 1000};
    FUZZ_CHECK(PtlEQAlloc(ni_, 4096, &events_) == PTL_OK);
    FUZZ_CHECK(PtlCTAlloc(ni_, &counter_) == PTL_OK);
    ptl_md_t md{has_device ? device->take(memory_bytes) : memory_.data(), memory_bytes, 0, events_,
                PTL_CT_NONE};
    FUZZ_CHECK(PtlMDBind(ni_, &md, &with_events_) == PTL_OK);
    md.start = memory_.data();
    md.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_SUCCESS_DISABLE |
                 PTL_MD_EVENT_SEND_DISABLE;
    md.eq_handle = PTL_EQ_NONE;
    md.ct_handle = counter_;
    FUZZ_CHECK(PtlMDBind(ni_, &md, &counting_) == PTL_OK);
    FUZZ_CHECK(PtlPTAlloc(ni_, input->flag() ? PTL_PT_FLOWCTRL : 0, events_, 3, &portal_) ==
               PTL_OK);
    transport->link.peer = {peer_.phys.nid, peer_.phys.pid};
    hand_up([](MessageSink& sink) {
      transport->link.context = nullptr;
      transport->link.context = sink.on_new_link(transport->link);
    });
  }

  void run() {
    for (unsigned step = 0; step < most_steps && !input->is_empty(); ++step) {
      act();
      poll();
    }
    end();
  }

 private:
  struct Begun {
    bool is_get = false;  // ends with PTL_EVENT_REPLY
    bool sends = false;   // posts PTL_EVENT_SEND
    bool asks = false;    // requests an acknowledgement
    unsigned send = 0;
    unsigned ack = 0;
    unsigned reply = 0;
  };

  static PhysicalInterface& physical() { return interface().physical(); }

  void hand_up(std::function<void(MessageSink&)> what) {
    transport->next = std::move(what);
    poll();
  }
  void hand_up(const MessageHeader& header, const std::byte* payload, size_t bytes) {
    const InboundMessage message{header, payload, static_cast<uint32_t>(bytes)};
    hand_up([&](MessageSink& sink) { sink.on_messages(transport->link, &message, 1); });
  }
  void poll() {
    physical().poller().exclusively([] { physical().poller().poll_once(); });
    ptl_event_t event;
    int code = PTL_OK;
    while ((code = PtlEQGet(events_, &event)) == PTL_OK || code == PTL_EQ_DROPPED) {
      FUZZ_CHECK(code == PTL_OK);
      take(event);
    }
  }

  void take(const ptl_event_t& event) {
    const auto index = reinterpret_cast<uintptr_t>(event.user_ptr);
    if (event.type != PTL_EVENT_SEND && event.type != PTL_EVENT_ACK &&
        event.type != PTL_EVENT_REPLY)
      return;
    FUZZ_CHECK(index >= 1 && index <= begun_.size());
    Begun& operation = begun_[index - 1];
    if (event.type == PTL_EVENT_SEND) FUZZ_CHECK(operation.sends && ++operation.send == 1);
    if (event.type == PTL_EVENT_ACK) FUZZ_CHECK(operation.asks && ++operation.ack == 1);
    if (event.type == PTL_EVENT_REPLY) FUZZ_CHECK(operation.is_get && ++operation.reply == 1);
    FUZZ_CHECK(event.mlength <= memory_bytes || event.ni_fail_type != PTL_NI_OK);
  }

  void act() {
    switch (input->below(12)) {
      case 0:
      case 1:
        return start();
      case 2:
        return append();
      case 3:
        transport->refuses = input->flag();
        return;
      case 4:
        return finish_remote();
      case 5:
        static_cast<void>(PtlPTEnable(ni_, portal_));
        return;
      case 6: {
        ptl_ct_event_t count;
        FUZZ_CHECK(PtlCTGet(counter_, &count) == PTL_OK);
        FUZZ_CHECK(count.success + count.failure <= counted_);
        return;
      }
      default:
        return has_device && input->flag() ? deliver_of_device() : deliver();
    }
  }

  void start() {
    if (begun_.size() == most_operations) return;
    const bool counts = input->flag();
    const ptl_handle_md_t md = counts ? counting_ : with_events_;
    const ptl_size_t length =
        input->flag() ? input->take<uint16_t>() % memory_bytes : input->byte();
    const ptl_size_t atomic = input->byte() / 8 * 8;
    constexpr ptl_ack_req_t acks[] = {PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ, PTL_NO_ACK_REQ};
    const ptl_ack_req_t ack = acks[input->below(4)];
    Begun operation;
    void* const number = reinterpret_cast<void*>(begun_.size() + 1);
    int code = PTL_OK;
    const uint64_t bits = input->below(2);
    switch (input->below(5)) {
      case 0:
        code = PtlPut(md, 0, length, ack, peer_, 3, bits, 0, number, 0);
        operation = {false, !counts, !counts && ack != PTL_NO_ACK_REQ};
        break;
      case 1:
        code = PtlGet(md, 0, length, peer_, 3, bits, 0, number);
        operation = {!counts, false, false};
        break;
      case 2:
        code = PtlAtomic(md, 0, atomic, ack, peer_, 3, bits, 0, number, 0, PTL_SUM, PTL_UINT64_T);
        operation = {false, !counts, !counts && ack != PTL_NO_ACK_REQ};
        break;
      case 3:
        code = PtlFetchAtomic(md, 0, md, 4096, atomic, peer_, 3, bits, 0, number, 0, PTL_SUM,
                              PTL_UINT64_T);
        operation = {!counts, !counts, false};
        break;
      default: {
        const uint64_t operand = 0;
        code = PtlSwap(md, 0, md, 4096, 8, peer_, 3, bits, 0, number, 0, &operand, PTL_CSWAP,
                       PTL_UINT64_T);
        operation = {!counts, !counts, false};
        break;
      }
    }
    if (code != PTL_OK) return;
    if (counts) counted_ += 2;
    begun_.push_back(operation);
  }

  // Memory of exactly the entry's length, so that an access outside is detected.
  void append() {
    if (entries_.size() == 32) return;
    Entry& entry = entries_.emplace_back();
    entry.memory = std::make_unique<std::byte[]>(entry.length = input->take<uint16_t>() % 20000);
    ptl_me_t me{};
    me.start = has_device && entry.length != 0 && input->flag() ? device->take(entry.length)
                                                                : entry.memory.get();
    me.length = entry.length;
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    me.match_bits = input->below(2);
    me.ignore_bits = input->below(2);
    me.min_free = input->byte();
    constexpr unsigned options[] = {0,
                                    PTL_ME_USE_ONCE,
                                    PTL_ME_MANAGE_LOCAL,
                                    PTL_ME_NO_TRUNCATE,
                                    PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN,
                                    PTL_ME_UNEXPECTED_HDR_DISABLE,
                                    PTL_ME_ACK_DISABLE};
    me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | options[input->below(7)];
    const int code =
        PtlMEAppend(ni_, portal_, &me, input->flag() ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST,
                    nullptr, &entry.handle);
    if (code != PTL_OK) entry.handle = PTL_INVALID_HANDLE;
  }

  void finish_remote() {
    if (transport->started.empty()) return;
    const MadeUpTransport::Started started = transport->started.back();
    transport->started.pop_back();
    constexpr RemoteStatus results[] = {RemoteStatus::done, RemoteStatus::unsupported,
                                        RemoteStatus::remote_fault, RemoteStatus::local_fault};
    const RemoteResult result{results[input->below(4)], input->byte()};
    hand_up([&](MessageSink& sink) { sink.on_remote_done(*started.link, started.token, result); });
  }

  // A long put or get from or to memory of the peer's device, whose description is mostly true. Or
  // the peer has freed that, of which copies may be under way.
  void deliver_of_device() {
    MessageHeader header{};
    const uint64_t id = 1 + input->below(MadeUpDriver::peer_allocations);
    if (input->below(8) == 0) {
      header.kind = MessageKind::freed;
      header.operation = MadeUpDriver::kind_number;
      header.match_bits = id;
      return hand_up(header, nullptr, 0);
    }
    header.kind = input->flag() ? MessageKind::put : MessageKind::get;
    header.flags = flag_remote_memory | slot_matching;
    header.modes = names_device;
    header.pt_index = 3;
    header.match_bits = input->below(2);
    header.remote_offset = input->byte();
    header.set_length(input->take<uint16_t>() % 30000);
    DeviceDescription described{MadeUpDriver::exported(id), input->take<uint16_t>() % 30000u};
    if (input->below(4) == 3) input->damage(&described, sizeof described, 2);
    const std::unique_ptr<std::byte[]> exact(new std::byte[sizeof described]);
    std::memcpy(exact.get(), &described, sizeof described);
    hand_up(header, exact.get(), sizeof described);
  }

  void deliver() {
    MessageHeader header{};
    header.kind = static_cast<MessageKind>(input->below(message_kinds + 1));
    header.flags = input->byte();
    if (input->below(4) != 0) header.flags &= flag_remote_memory | flag_last | flag_overflow_list;
    const bool request = header.kind >= MessageKind::put && header.kind <= MessageKind::swap;
    // Mostly requests that pass the checks.
    if (request && input->below(8) != 0)
      header.flags = (header.flags & flag_remote_memory) | slot_matching;
    header.operation = input->byte();
    header.modes = input->byte();
    header.cookie = transport->cookies.empty() || input->below(8) == 0
                        ? input->take<uint32_t>()
                        : transport->cookies[input->byte() % transport->cookies.size()];
    header.pt_index = input->below(8) == 0 ? input->take<uint16_t>() : 3;
    header.match_bits = input->below(8) == 0 ? input->take<uint64_t>() : input->below(2);
    header.remote_offset = input->below(4) == 0 ? input->take<uint64_t>() : input->take<uint16_t>();
    const std::vector<std::byte> payload = input->bytes((header.flags & flag_remote_memory) != 0
                                                            ? sizeof(RemoteMemory) * input->below(4)
                                                            : input->byte());
    uint64_t length = payload.size();
    if (input->below(4) == 0 || (header.flags & flag_remote_memory) != 0)
      length =
          input->flag() ? input->take<uint64_t>() & max_message_length : input->take<uint16_t>();
    header.set_length(length);
    // A copy without spare bytes, so that an access outside is detected.
    const std::unique_ptr<std::byte[]> exact(new std::byte[payload.size()]);
    if (!payload.empty()) std::memcpy(exact.get(), payload.data(), payload.size());
    hand_up(header, exact.get(), payload.size());
  }

  // The peer dies: every operation ends, and all objects can be released.
  void end() {
    transport->refuses = false;
    transport->fails = true;
    while (!transport->started.empty()) {
      const MadeUpTransport::Started started = transport->started.back();
      transport->started.pop_back();
      hand_up([&](MessageSink& sink) {
        sink.on_remote_done(*started.link, started.token, {RemoteStatus::peer_failed, 0});
      });
    }
    hand_up([](MessageSink& sink) { sink.on_peer_failed(transport->link); });
    for (unsigned i = 0; i < 8; ++i) poll();
    // Copies that write may still be under way.
    for (unsigned i = 0; has_device && i < most_steps && !input->is_empty(); ++i) poll();
    for (const Begun& operation : begun_) {
      FUZZ_CHECK(!operation.is_get || operation.reply == 1);
      FUZZ_CHECK(!operation.sends || operation.send == 1);
    }
    FUZZ_CHECK(PtlMDRelease(with_events_) == PTL_OK);
    FUZZ_CHECK(PtlMDRelease(counting_) == PTL_OK);
    FUZZ_CHECK(PtlPTDisable(ni_, portal_) == PTL_OK);
    // Unclaimed headers keep their entries in use.
    ptl_me_t any{};
    any.ct_handle = PTL_CT_NONE;
    any.uid = PTL_UID_ANY;
    any.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    any.ignore_bits = ~ptl_match_bits_t{0};
    any.options = PTL_ME_OP_PUT | PTL_ME_OP_GET;
    FUZZ_CHECK(PtlMESearch(ni_, portal_, &any, PTL_SEARCH_DELETE, nullptr) == PTL_OK);
    poll();
    for (const Entry& entry : entries_) {
      if (entry.handle == PTL_INVALID_HANDLE) continue;
      const int code = PtlMEUnlink(entry.handle);
      // The others: the entry was unlinked automatically (spec 3.11.3).
      FUZZ_CHECK(code == PTL_OK || code == PTL_IN_USE || code == PTL_ARG_INVALID);
    }
    FUZZ_CHECK(PtlPTFree(ni_, portal_) == PTL_OK);
    FUZZ_CHECK(PtlCTFree(counter_) == PTL_OK);
    FUZZ_CHECK(PtlEQFree(events_) == PTL_OK);
    if (has_device) device->reset();
  }

  struct Entry {
    std::unique_ptr<std::byte[]> memory;
    size_t length = 0;
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  };

  static inline uint32_t peers_used = 0;

  const ptl_handle_ni_t ni_;
  std::vector<std::byte> memory_;
  std::vector<Entry> entries_;
  std::vector<Begun> begun_;
  ptl_process_t peer_{};
  ptl_handle_eq_t events_ = PTL_EQ_NONE;
  ptl_handle_ct_t counter_ = PTL_CT_NONE;
  ptl_handle_md_t with_events_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t counting_ = PTL_INVALID_HANDLE;
  ptl_pt_index_t portal_ = 0;
  uint64_t counted_ = 0;
};

}  // namespace
}  // namespace lintel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lintel;
  fuzz::Input input(data, size);
  fuzz::input = &input;
  static_cast<void>(fuzz::interface());
  fuzz::Fuzzed().run();
  fuzz::input = nullptr;
  return 0;
}
