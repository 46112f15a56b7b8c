// Both ends of a lane whose memory the other side changes arbitrarily: before, between and during
// reads. No access goes outside the lane, and messages are delivered as they were checked.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "fuzz/parsers/input.h"
#include "lane/lane_consumer.h"
#include "lane/lane_producer.h"

namespace lintel::fuzz {
namespace {

constexpr LaneGeometry geometry{5, 2 * lane_max_payload_bytes};
static_assert(geometry.valid());
constexpr unsigned burst = 16;

// A lane that ends at an inaccessible page.
class GuardedLane {
 public:
  GuardedLane() {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = (geometry.bytes() + page - 1) / page * page;
    auto* const all = static_cast<std::byte*>(
        mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    FUZZ_CHECK(all != MAP_FAILED && mprotect(all + bytes, page, PROT_NONE) == 0);
    static_assert(geometry.bytes() % 128 == 0);
    control_ = reinterpret_cast<LaneControl*>(all + bytes - geometry.bytes());
  }
  void clear() noexcept { std::memset(static_cast<void*>(control_), 0, geometry.bytes()); }
  [[nodiscard]] LaneControl* control() const noexcept { return control_; }
  [[nodiscard]] std::byte* bytes() const noexcept { return reinterpret_cast<std::byte*>(control_); }

 private:
  LaneControl* control_;
};

// A thread that alternates one word of the lane between two values during a run.
class Scribbler {
 public:
  void begin(std::atomic<uint32_t>& word, uint32_t one, uint32_t other) {
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    values_[0] = one;
    values_[1] = other;
    word_.store(&word, std::memory_order_release);
  }
  void end() {
    word_.store(nullptr, std::memory_order_release);
    while (busy_.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~Scribbler() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void work() {
    while (!ends_) {
      busy_.store(true, std::memory_order_seq_cst);
      if (std::atomic<uint32_t>* const word = word_.load(std::memory_order_seq_cst)) {
        for (const uint32_t value : values_) word->store(value, std::memory_order_relaxed);
        busy_.store(false, std::memory_order_release);
      } else {
        busy_.store(false, std::memory_order_release);
        std::this_thread::yield();
      }
    }
  }
  std::thread thread_;
  std::atomic<std::atomic<uint32_t>*> word_{nullptr};
  std::atomic<uint32_t> values_[2] = {};
  std::atomic<bool> busy_{false};
  std::atomic<bool> ends_{false};
};

void write_cell(Input& input, GuardedLane& lane, uint32_t cell, uint32_t lap) {
  LaneCell& at = cells_of(lane.control())[cell % geometry.cells];
  MessageHeader header{};
  header.kind = static_cast<MessageKind>(input.below(message_kinds + 1));
  header.flags = input.byte() & (input.flag() ? 0xff : flag_known);
  const uint32_t length = input.flag() ? input.take<uint16_t>() : input.below(lane_inline_bytes);
  header.set_length(length);
  header.link_word = (input.below(8) == 0 ? input.take<uint16_t>() : lap) << 16 | length;
  at.header = header;
  const uint32_t offset = input.flag() ? input.take<uint32_t>() : input.take<uint16_t>();
  std::memcpy(at.payload, &offset, sizeof offset);
}

void scribble(Input& input, GuardedLane& lane) {
  const size_t at = input.take<uint16_t>() % (geometry.bytes() - 8);
  input.fill(lane.bytes() + at, 1 + input.below(8));
}

bool lies_in(const GuardedLane& lane, const InboundMessage& message) noexcept {
  return message.payload >= lane.bytes() &&
         message.payload + message.payload_length <= lane.bytes() + geometry.bytes();
}

void consume(Input& input, GuardedLane& lane, LaneConsumer& consumer) {
  InboundMessage messages[burst];
  bool malformed = false;
  const unsigned count = consumer.peek(messages, 1 + input.below(burst), malformed);
  FUZZ_CHECK(count <= burst);
  if (input.flag()) scribble(input, lane);
  uint64_t sum = 0;
  for (unsigned i = 0; i < count; ++i) {
    const InboundMessage& message = messages[i];
    FUZZ_CHECK(message.payload_length <= lane_max_payload_bytes);
    FUZZ_CHECK(message.payload_length == 0 || lies_in(lane, message));
    FUZZ_CHECK(message.header.kind != MessageKind::none &&
               static_cast<unsigned>(message.header.kind) < message_kinds);
    for (uint32_t byte = 0; byte < message.payload_length; ++byte)
      sum += static_cast<uint64_t>(message.payload[byte]);
  }
  volatile uint64_t read = sum;
  static_cast<void>(read);
  if (count != 0) static_cast<void>(consumer.release(count));
  uint32_t cookies[lane_ack_places];
  FUZZ_CHECK(consumer.acks().take(cookies, malformed) <= lane_ack_places);
  static_cast<void>(consumer.release_on_request());
  static_cast<void>(consumer.producer_sleeps());
}

void produce(Input& input, LaneProducer& producer) {
  static std::byte payload[lane_max_payload_bytes];
  const size_t length = input.flag() ? input.take<uint16_t>() % (sizeof payload + 1) : input.byte();
  const Piece pieces[2] = {{payload, length / 2}, {payload, length - length / 2}};
  MessageHeader header{};
  header.kind = MessageKind::put;
  if (input.flag()) {
    const uint32_t cookies[2 * lane_ack_places] = {};
    const unsigned most = 1 + input.below(2 * lane_ack_places);
    FUZZ_CHECK(producer.acks().push(cookies, most) <= most);
  }
  const unsigned count = input.below(3);
  const SendStatus status = producer.push(header, pieces, count);
  FUZZ_CHECK(status == SendStatus::sent || status == SendStatus::queue_full);
  static_cast<void>(producer.room_appeared());
}

}  // namespace
}  // namespace lintel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lintel;
  using namespace lintel::fuzz;
  static GuardedLane read_lane;
  static GuardedLane written_lane;
  static Scribbler scribbler;
  Input input(data, size);
  read_lane.clear();
  written_lane.clear();
  LaneConsumer consumer;
  LaneProducer producer;
  consumer.attach(read_lane.control(), geometry);
  FUZZ_CHECK(producer.attach(written_lane.control(), geometry));
  const bool at_the_same_time = input.below(16) == 0;
  if (at_the_same_time) {
    const uint32_t words = static_cast<uint32_t>(geometry.bytes() / sizeof(uint32_t));
    auto& word =
        reinterpret_cast<std::atomic<uint32_t>*>(read_lane.bytes())[input.take<uint16_t>() % words];
    scribbler.begin(word, input.take<uint32_t>(), input.take<uint32_t>());
  }
  uint32_t written = 0;
  for (unsigned step = 0; step < 200 && !input.is_empty(); ++step) {
    switch (input.below(8)) {
      case 0:
      case 1:
      case 2:
        write_cell(input, read_lane, geometry.cell_after(0, written % geometry.cells),
                   1 + written / geometry.cells);
        ++written;
        break;
      case 3:
        scribble(input, read_lane);
        break;
      case 4:
        scribble(input, written_lane);
        break;
      case 5:
        produce(input, producer);
        break;
      default:
        consume(input, read_lane, consumer);
        break;
    }
  }
  if (at_the_same_time) scribbler.end();
  return 0;
}
