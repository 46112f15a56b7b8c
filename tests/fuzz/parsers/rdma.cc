// The messages between two transports over RDMA devices: agreements on queue pairs, some of them
// changed or invented, descriptions of memory for remote accesses, and the record of a resolver.
#include <deque>
#include <memory>

#include "fuzz/parsers/input.h"
#include "registration/watched_cache.h"
#include "support/fake_verbs/fake_verbs.h"
#include "util/crc32c.h"
#include "util/guarded_memory.h"
#include "util/log.h"
#include "verbs/agreement.h"
#include "verbs/resolver_record.h"
#include "verbs/verbs_transport.h"

namespace lintel::fuzz {
namespace {

constexpr uint32_t eager_bytes = 1024;
constexpr unsigned most_steps = 100;
Input* input = nullptr;  // of the current run

// The layer of datagrams below a transport: messages sent at one end arrive at the other.
class Datagrams final : public Transport {
 public:
  explicit Datagrams(uint32_t peer) noexcept { link_.peer = {peer, 1}; }

  void join(Datagrams& other) noexcept { other_ = &other; }
  void inject(const MessageHeader& header, std::vector<std::byte> payload) {
    arrived_.push_back({header, std::move(payload)});
  }
  void fail() noexcept { failed_ = true; }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return offers_; }
  [[nodiscard]] Link* connect(ProcessId, std::string*) override { return &link_; }
  [[nodiscard]] uint64_t incarnation(Link&) const noexcept override { return 1; }
  [[nodiscard]] SendStatus send(Link&, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override {
    if (other_ == nullptr) return SendStatus::peer_failed;
    std::vector<std::byte> payload;
    for (unsigned i = 0; i < count; ++i)
      payload.insert(payload.end(), pieces[i].base, pieces[i].base + pieces[i].length);
    if (header.kind == MessageKind::connection && input->below(4) == 0)
      input->damage(payload.data(), payload.size(), 2);
    other_->inject(header, std::move(payload));
    return SendStatus::sent;
  }
  unsigned poll(MessageSink& sink, unsigned budget) noexcept override {
    if (!announced_) link_.context = sink.on_new_link(link_);
    announced_ = true;
    unsigned count = 0;
    for (; count < budget && !arrived_.empty(); ++count) {
      const Arrived message = std::move(arrived_.front());
      arrived_.pop_front();
      const InboundMessage inbound{message.header, message.payload.data(),
                                   static_cast<uint32_t>(message.payload.size())};
      sink.on_messages(link_, &inbound, 1);
    }
    if (failed_) sink.on_peer_failed(link_);
    failed_ = false;
    return count;
  }
  [[nodiscard]] bool arm(bool) noexcept override { return true; }
  [[nodiscard]] std::string describe() const override { return "made up"; }

 private:
  struct Arrived {
    MessageHeader header;
    std::vector<std::byte> payload;
  };
  Capabilities offers_{.name = "made up",
                       .max_eager_bytes = eager_bytes,
                       .remote_access = false,
                       .remote_asynchronous = false,
                       .remote_threshold_bytes = 0};
  Link link_;
  Datagrams* other_ = nullptr;
  std::deque<Arrived> arrived_;
  bool announced_ = false;
  bool failed_ = false;
};

class Process final : public MessageSink {
 public:
  Process(const VerbsDevices& devices, RegistrationCache& cache, uint32_t peer) : peer_(peer) {
    auto below = std::make_unique<Datagrams>(peer);
    datagrams = below.get();
    VerbsSettings settings;
    settings.id = {3 - peer, 1};
    settings.max_rc = 4;
    settings.receive_buffers = 16;
    settings.eager_bytes = eager_bytes;
    settings.rc_idle_ns = 1'000'000'000;
    settings.registration_cache = &cache;
    std::string reason;
    transport = VerbsTransport::open(devices, std::move(below), settings, reason);
    FUZZ_CHECK(transport != nullptr);
    link = transport->connect({peer, 1}, &reason);
    FUZZ_CHECK(link != nullptr);
  }

  void poll() { transport->poll(*this, 64); }
  void send(uint32_t bytes) {
    std::vector<std::byte> payload(bytes);
    MessageHeader header{};
    header.kind = MessageKind::put;
    header.set_length(bytes);
    const Piece piece{payload.data(), bytes};
    static_cast<void>(transport->send(*link, header, &piece, bytes != 0 ? 1 : 0));
  }

  void* on_new_link(Link& of) noexcept override {
    return of.context != nullptr ? of.context : this;
  }
  void on_messages(Link&, const InboundMessage* messages, unsigned count) noexcept override {
    for (unsigned i = 0; i < count; ++i) FUZZ_CHECK(messages[i].payload_length <= eager_bytes);
  }
  void on_peer_failed(Link&) noexcept override {
    std::string reason;
    link = transport->connect({peer_, 1}, &reason);
  }
  void on_remote_done(Link&, uint32_t token, RemoteResult) noexcept override {
    FUZZ_CHECK(token == 7 && accesses != 0);
    --accesses;
  }
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return true; }

  Datagrams* datagrams = nullptr;
  std::unique_ptr<VerbsTransport> transport;
  Link* link = nullptr;
  unsigned accesses = 0;  // in progress

 private:
  uint32_t peer_;
};

void make_up_agreement(Process& to) {
  AgreementBody body{};
  body.version = agreement_version;
  body.mtu = IBV_MTU_1024;
  body.reads = 1;
  const std::vector<uint32_t> numbers = fake_verbs::queue_pairs(IBV_QPT_RC);
  const auto number = [&]() -> uint32_t {
    return numbers.empty() || input->below(4) == 0 ? input->byte()
                                                   : numbers[input->byte() % numbers.size()];
  };
  body.sender_number = number();
  body.receiver_number = number();
  body.channel_index = input->byte();
  body.eager_bytes = eager_bytes;
  body.received = input->byte();
  body.gid[15] = 1;
  body.rail = input->below(3);
  input->damage(&body, sizeof body, 2);
  MessageHeader header{};
  header.kind = MessageKind::connection;
  header.operation = input->byte() % 8;
  std::vector<std::byte> payload(sizeof body);
  std::memcpy(payload.data(), &body, sizeof body);
  if (input->below(16) == 0) payload.resize(input->byte());
  to.datagrams->inject(header, std::move(payload));
}

// Accesses memory with an arbitrary description from the peer.
void access(Process& by, Process& other) {
  static std::vector<std::byte> memory(2 * StripedAccesses::least_bytes);
  static std::vector<std::byte> of_other(2 * StripedAccesses::least_bytes);
  RemoteMemory remote[2] = {{reinterpret_cast<uint64_t>(of_other.data()), 8192, 0},
                            {reinterpret_cast<uint64_t>(of_other.data()), 8192, 0}};
  const Piece theirs{of_other.data(), of_other.size()};
  const bool write = input->flag();
  const Exposure exposure = other.transport->expose(*other.link, &theirs, 1, write, 5, remote);
  const uint64_t length = 1 + input->take<uint16_t>() * (memory.size() >> 16);
  remote[0].length = length;
  input->damage(remote, sizeof remote, 2);
  if (remote[0].length > memory.size()) remote[0].length = length;
  const Piece local{memory.data(), remote[0].length};
  const RemoteResult result = by.transport->remote_access(*by.link, write, &local, 1, remote, 1, 7);
  if (result.status == RemoteStatus::started) ++by.accesses;
  for (unsigned i = 0; i < 4; ++i) {
    by.poll();
    other.poll();
  }
  if (exposure.number != Exposure::none)
    other.transport->withdraw(*other.link, exposure.number, true);
}

void read_record_of_input() {
  constexpr ProcessId id{0xc0a84d01, 17};
  UdDestination destination;
  destination.gid.raw[15] = 1;
  destination.is_roce = true;
  destination.queue_pair = 0x123456;
  destination.mtu = 4096;
  ResolverRecord record = make_record(id, destination);
  input->damage(&record, sizeof record, 4);
  if (input->below(8) != 0) record.check = crc32c(~0u, &record, offsetof(ResolverRecord, check));
  const bool is_roce = input->below(4) != 0;
  UdDestination read;
  if (read_record(record, id, is_roce, read) != nullptr) return;
  FUZZ_CHECK(read.is_roce == is_roce);
  FUZZ_CHECK(read.queue_pair > 1 && read.queue_pair < 1u << 24);
  FUZZ_CHECK(read.mtu >= PacketLink::least_mtu && read.mtu <= PacketLink::largest_mtu);
}

void run() {
  fake_verbs::reset({.devices = 2});
  // As in a program, it is not destroyed before the transports.
  static WatchedCache& cache = *new WatchedCache(WatchedCache::Settings{});
  std::string reason;
  VerbsPortWish wish;
  wish.most_ports = 2;
  const VerbsDevices devices = VerbsDevice::open_all(wish, reason);
  FUZZ_CHECK(devices.size() == 2);
  Process first(devices, cache, 2);
  Process second(devices, cache, 1);
  first.datagrams->join(*second.datagrams);
  second.datagrams->join(*first.datagrams);
  first.poll();
  second.poll();
  for (unsigned step = 0; step < most_steps && !input->is_empty(); ++step) {
    Process& one = input->flag() ? first : second;
    Process& other = &one == &first ? second : first;
    switch (input->below(8)) {
      case 0:
      case 1:
      case 2:
        for (unsigned i = input->below(64); i != 0; --i) one.send(input->byte() * 4u);
        break;
      case 3:
        make_up_agreement(one);
        break;
      case 4:
        access(one, other);
        break;
      case 5:
        one.datagrams->fail();
        break;
      default:
        break;
    }
    one.poll();
    if (input->flag()) other.poll();
  }
  for (unsigned i = 0; i < 16; ++i) {
    first.poll();
    second.poll();
  }
}

}  // namespace
}  // namespace lintel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lintel;
  static const bool ready = [] {
    set_log_level(LogLevel::error);
    install_fault_handler();
    return true;
  }();
  static_cast<void>(ready);
  fuzz::Input input(data, size);
  fuzz::input = &input;
  if (input.below(8) == 0)
    fuzz::read_record_of_input();
  else
    fuzz::run();
  fuzz::input = nullptr;
  return 0;
}
