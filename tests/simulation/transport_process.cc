#include "simulation/transport_process.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "simulation/virtual_time.h"

namespace lintel::simulation {

namespace {

constexpr unsigned poll_budget = 32;
constexpr uint64_t check_pause_ns = 100 * millisecond;   // between calls of check_peers()
constexpr uint64_t connect_pause_ns = 10 * millisecond;  // after a failure
constexpr uint64_t never = UINT64_MAX;
constexpr uint32_t cookie_wants_answer = 1;

}  // namespace

TransportProcess::TransportProcess(Network& network, Record& record, uint32_t number,
                                   const ProcessShape& shape)
    : SimulatedProcess(network, record, number, shape) {
  TransportProcess::start();
}

TransportProcess::~TransportProcess() {
  if (is_running()) TransportProcess::end(true);
}

void TransportProcess::start() {
  owned_ = open_transport();
  armed_ = false;
}

void TransportProcess::end(bool politely) {
  close_transport(politely);
  owned_.reset();
  for (const auto& [number, peer] : peers_)
    if (peer.stream != 0) record_.stream(peer.stream).failed = true;
  peers_.clear();
  with_waiting_.clear();
  with_awaited_.clear();
}

void TransportProcess::add(uint32_t to, const OutgoingMessage& message) {
  peers_[to].waiting.push_back(message);
  with_waiting_.insert(to);
}

void TransportProcess::give_up(uint32_t peer) {
  peers_[peer].waiting.clear();
  with_waiting_.erase(peer);
}

uint64_t TransportProcess::run() {
  if (armed_) transport_->disarm();
  armed_ = false;
  const unsigned work = transport_->poll(*this, poll_budget);
  const bool sent = send_waiting();
  note_frame_memory();
  look_after_peers();
  const uint64_t soon_ns = virtual_now_ns + shape_.poll_ns;
  if (work != 0 || sent || link_->has_frames()) return soon_ns;
  if (!transport_->arm(true)) return soon_ns;
  armed_ = true;
  uint64_t next_ns = never;
  if (const int64_t limit_ns = transport_->sleep_limit_ns(); limit_ns >= 0)
    next_ns = std::max(virtual_now_ns + static_cast<uint64_t>(limit_ns), soon_ns);
  for (const uint32_t number : with_waiting_)
    if (const Peer& peer = peers_[number]; peer.link == nullptr)
      next_ns = std::min(next_ns, std::max(peer.retry_ns, soon_ns));
  if (!with_awaited_.empty()) next_ns = std::min(next_ns, std::max(next_check_ns_, soon_ns));
  return next_ns;
}

bool TransportProcess::send_waiting() {
  bool sent = false;
  for (auto next = with_waiting_.begin(); next != with_waiting_.end();) {
    Peer& peer = peers_[*next];
    for (unsigned i = 0; !peer.waiting.empty(); ++i) {
      // All data messages of one transfer are sent in one burst.
      const OutgoingMessage message = peer.waiting.front();
      if (i >= shape_.messages_per_poll && message.kind != MessageKind::data) break;
      if (send(*next, peer, message) != SendStatus::sent) break;
      sent = true;
      peer.waiting.pop_front();
    }
    next = peer.waiting.empty() ? with_waiting_.erase(next) : std::next(next);
  }
  return sent;
}

SendStatus TransportProcess::send(uint32_t to, Peer& peer, const OutgoingMessage& message) {
  if (peer.link == nullptr) {
    if (virtual_now_ns < peer.retry_ns) return SendStatus::connecting;
    peer.link = transport_->connect(id_of(to), nullptr);
    if (peer.link == nullptr) {
      record_.add_problem("no link to process " + std::to_string(to));
      return SendStatus::peer_failed;
    }
    peer.stream = record_.begin_stream(number_, to);
  }
  Stream& stream = record_.stream(peer.stream);
  const uint32_t most = message.kind == MessageKind::data ? peer.link->max_data_bytes.load()
                                                          : ReliableTransport::max_eager_bytes;
  const uint32_t bytes = std::min(message.bytes, most);
  MessageHeader header{};
  header.kind = message.kind;
  header.flags = message.kind == MessageKind::data && message.is_last ? flag_last : 0;
  header.cookie = message.wants_answer ? cookie_wants_answer : 0;
  header.match_bits = stream.sent;
  header.hdr_data = peer.stream;
  header.remote_offset = bytes;
  header.set_length(virtual_now_ns - start_ns);
  const Piece piece{const_cast<std::byte*>(payload_of(peer.stream, stream.sent)), bytes};
  const SendStatus status = transport_->send(*peer.link, header, &piece, bytes == 0 ? 0 : 1);
  if (status == SendStatus::sent) {
    ++stream.sent;
    if (message.wants_answer && ++peer.answers_awaited == 1) with_awaited_.insert(to);
  } else if (status == SendStatus::inaccessible) {
    record_.add_problem("a payload was refused as inaccessible");
  }
  return status;
}

void TransportProcess::look_after_peers() {
  if (virtual_now_ns < next_check_ns_) return;
  next_check_ns_ = virtual_now_ns + check_pause_ns;
  std::vector<Link*> watch;
  for (const uint32_t number : with_awaited_) watch.push_back(peers_[number].link);
  transport_->check_peers(*this, watch.data(), static_cast<unsigned>(watch.size()));
}

bool TransportProcess::is_done() {
  return with_waiting_.empty() && with_awaited_.empty() && transport_->all_delivered();
}

void* TransportProcess::on_new_link(Link& link) noexcept { return &link; }

void TransportProcess::on_messages(Link& link, const InboundMessage* messages,
                                   unsigned count) noexcept {
  const uint32_t from = process_of(link.peer);
  Peer& peer = peers_[from];
  for (unsigned i = 0; i < count; ++i) {
    const MessageHeader& header = messages[i].header;
    record_.note_delivery(number_, header, messages[i].payload, messages[i].payload_length);
    if (header.hdr_data < peer.stream_from)
      record_.add_problem("a message of stream " + std::to_string(header.hdr_data) +
                          " arrives after one of stream " + std::to_string(peer.stream_from));
    peer.stream_from = header.hdr_data;
    if ((header.cookie & cookie_wants_answer) != 0) add(from, {0, MessageKind::ack, true, false});
    if (header.kind == MessageKind::ack && peer.answers_awaited != 0 && --peer.answers_awaited == 0)
      with_awaited_.erase(from);
  }
}

void TransportProcess::on_peer_failed(Link& link) noexcept {
  const uint32_t number = process_of(link.peer);
  record_.note_failure(number_, number);
  Peer& peer = peers_[number];
  if (peer.link != nullptr) record_.stream(peer.stream).failed = true;
  peer.link = nullptr;
  peer.answers_awaited = 0;
  with_awaited_.erase(number);
  peer.retry_ns = virtual_now_ns + connect_pause_ns;
  // Answers to messages of the old connection are useless.
  std::erase_if(peer.waiting,
                [](const OutgoingMessage& message) { return message.kind == MessageKind::ack; });
  if (peer.waiting.empty()) with_waiting_.erase(number);
}

}  // namespace lintel::simulation
