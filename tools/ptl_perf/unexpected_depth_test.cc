// Test kind unexpected-depth: an append that claims one of many unexpected headers (spec 2.5,
// 3.12.2). Message path between the readings of the clock.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <deque>
#include <optional>
#include <random>

#include "ptl_perf/channel.h"
#include "ptl_perf/context.h"
#include "ptl_perf/progress_line.h"
#include "ptl_perf/sweep.h"
#include "ptl_perf/tests.h"

namespace lintel::perf {
namespace {

constexpr const char* meaning =
    "time of one PtlMEAppend that finds its message among so many unexpected headers (depth) "
    "besides, taken over 16 appends in a row; the events are taken from the queue afterwards";

constexpr std::uint64_t claims_per_round = 16;

/** Sends unexpected messages, numbered in their match bits. */
class UnexpectedSender {
 public:
  UnexpectedSender(Session& session, Endpoint& endpoint)
      : to_(peer_of(session, endpoint)),
        nothing_(0, 1, 0),
        source_(endpoint, nothing_, Completion::nothing, 0, 0) {}

  void send(std::uint64_t count) {
    for (; count != 0; --count) {
      require(PtlPut(source_.descriptor(), 0, 0, PTL_NO_ACK_REQ, to_.process, to_.index, number_++,
                     0, nullptr, 0),
              "PtlPut");
    }
  }

 private:
  Destination to_;
  Region nothing_;
  Source source_;
  std::uint64_t number_ = 0;
};

/** Keeps the unexpected headers and claims some of them. */
class UnexpectedReceiver {
 public:
  UnexpectedReceiver(Session& session, Endpoint& endpoint, ClaimOrder order)
      : endpoint_(endpoint),
        peer_(endpoint.addresses[session.peer_rank()]),
        order_(order),
        arrivals_(allocate_counter(endpoint.interface)),
        queue_(allocate_event_queue(endpoint.interface, 4 * claims_per_round)),
        portal_(endpoint.interface, 0, queue_.get(), data_index) {
    // Takes every header, of messages without data, and counts them.
    ptl_me_t entry = entry_for(0);
    entry.ct_handle = arrivals_.get();
    entry.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE |
                    PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;
    entry.ignore_bits = ~ptl_match_bits_t{0};
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    require(
        PtlMEAppend(endpoint.interface, data_index, &entry, PTL_OVERFLOW_LIST, nullptr, &handle),
        "PtlMEAppend");
    overflow_ = MatchEntry(handle);
  }

  /** Waits until so many more messages have come. */
  void await(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) unclaimed_.push_back(arrived_++);
    ptl_ct_event_t value;
    const int code = PtlCTWait(arrivals_.get(), arrived_, &value);
    if (code != PTL_OK || value.failure != 0) throw_count_failed("PtlCTWait", code, value);
  }

  /** Claims claims_per_round of them; returns the ticks that the appends took. */
  std::uint64_t claim() {
    std::array<ptl_me_t, claims_per_round> entries{};
    for (ptl_me_t& entry : entries) entry = entry_for(choose());

    std::array<ptl_handle_me_t, claims_per_round> handles{};
    const std::uint64_t start = ticks_now();
    for (std::uint64_t i = 0; i < claims_per_round; ++i) {
      require(PtlMEAppend(endpoint_.interface, data_index, &entries[i], PTL_PRIORITY_LIST, nullptr,
                          &handles[i]),
              "PtlMEAppend");
    }
    const std::uint64_t ticks = ticks_now() - start;
    for (const ptl_me_t& entry : entries) expect_overflow_event(entry);
    return ticks;
  }

  /** Claims all that is left, so that the overflow entry can be unlinked. */
  void drain() {
    while (!unclaimed_.empty()) {
      const ptl_me_t entry = entry_for(choose());
      ptl_handle_me_t handle = PTL_INVALID_HANDLE;
      require(
          PtlMEAppend(endpoint_.interface, data_index, &entry, PTL_PRIORITY_LIST, nullptr, &handle),
          "PtlMEAppend");
      expect_overflow_event(entry);
    }
  }

 private:
  ptl_me_t entry_for(std::uint64_t number) const {
    ptl_me_t entry{};
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = PTL_UID_ANY;
    entry.options =
        PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;
    entry.match_id = peer_;
    entry.match_bits = number;
    return entry;
  }

  std::uint64_t choose() {
    std::size_t index = 0;
    if (order_ == ClaimOrder::newest) {
      index = unclaimed_.size() - 1;
    } else if (order_ == ClaimOrder::random) {
      index = std::uniform_int_distribution<std::size_t>(0, unclaimed_.size() - 1)(random_);
    }
    const std::uint64_t number = unclaimed_[index];
    if (order_ == ClaimOrder::random) {
      unclaimed_[index] = unclaimed_.back();  // the order does not matter
      unclaimed_.pop_back();
    } else {
      unclaimed_.erase(unclaimed_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    return number;
  }

  void expect_overflow_event(const ptl_me_t& entry) {
    ptl_event_t event{};
    const int code = PtlEQWait(queue_.get(), &event);
    if (code != PTL_OK || event.ni_fail_type != PTL_NI_OK) {
      throw_event_failed("PtlEQWait", code, event);
    }
    if (event.type != PTL_EVENT_PUT_OVERFLOW || event.match_bits != entry.match_bits) {
      throw Failure(ExitCode::wrong_data,
                    "an append for message " + std::to_string(entry.match_bits) +
                        " gave an event of kind " + std::to_string(event.type) + " for message " +
                        std::to_string(event.match_bits));
    }
  }

  Endpoint& endpoint_;
  ptl_process_t peer_;
  ClaimOrder order_;
  Counter arrivals_;
  EventQueue queue_;
  PortalEntry portal_;
  MatchEntry overflow_;
  std::deque<std::uint64_t> unclaimed_;
  std::uint64_t arrived_ = 0;
  std::mt19937_64 random_{42};
};

const char* order_name(ClaimOrder order) {
  switch (order) {
    case ClaimOrder::oldest:
      return "the oldest header";
    case ClaimOrder::newest:
      return "the newest header";
    case ClaimOrder::random:
      return "a random header";
  }
  return "a header";
}

// The target of a pair measures here, but results come from initiators: so the roles are swapped,
// and the odd rank sends.
void measure_depth(Context& context, std::uint64_t depth) {
  Session& session = context.session;
  Endpoint& endpoint = context.endpoint();
  const bool receives = session.initiator();
  UnexpectedSender sender(session, endpoint);
  std::optional<UnexpectedReceiver> receiver;
  if (receives) receiver.emplace(session, endpoint, context.settings.claim_order);

  Point point = make_point(context, "unexpected-depth", "append", meaning);
  point.configuration = std::string("matching, ") + (endpoint.logical ? "logical" : "physical") +
                        ", claims " + order_name(context.settings.claim_order);
  point.parameter_name = "depth";
  point.parameter = depth;
  point.granularity = claims_per_round;
  session.barrier();  // the overflow entry is there
  if (receives) {
    receiver->await(depth);
  } else {
    sender.send(depth);
  }
  context.report(measure(context, point, [&](const Pass& pass) -> std::uint64_t {
    PartialClock clock(pass);
    for (std::uint64_t left = pass.operations; left > 0; left -= claims_per_round) {
      session.barrier();
      if (receives) {
        receiver->await(claims_per_round);
        clock.add(claims_per_round, receiver->claim());
      } else {
        sender.send(claims_per_round);
      }
    }
    return 0;
  }));
  if (receives) receiver->drain();
  session.barrier();
}

}  // namespace

void run_unexpected_depth(Context& context) {
  std::vector<std::uint64_t> depths = context.settings.depths;
  if (depths.empty()) depths = {0, 10, 100, 1000, 10'000, 100'000};
  const std::uint64_t limit =
      static_cast<std::uint64_t>(context.endpoint().limits.max_unexpected_headers);
  context.progress.expect(depths.size());
  for (const std::uint64_t depth : depths) {
    if (depth + claims_per_round > limit) {
      throw Failure(ExitCode::usage, "--depths: " + std::to_string(depth) + " is more than " +
                                         std::to_string(limit) +
                                         ", the max_unexpected_headers of the interface");
    }
    measure_depth(context, depth);
  }
}

}  // namespace lintel::perf
