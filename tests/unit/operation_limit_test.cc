// The maximum number of operations is outstanding: further ones wait, or end with their events.
#include <portals4.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bare_target_support.h"
#include "core/progress/wait.h"

namespace lintel {
namespace {

using test::must;
using test::wait_until;

class OperationLimitTest : public test::BareTargetTest {
 protected:
  void SetUp() override {
    BareTargetTest::SetUp();
    must(PtlEQAlloc(ni_, 128, &events_));
    const ptl_md_t description{memory_, sizeof memory_, 0, events_, PTL_CT_NONE};
    must(PtlMDBind(ni_, &description, &md_));
    take_records(peer());
    std::lock_guard guard(peer().send_lock);
    while (Operation* operation = physical().initiator().operations().allocate(peer()))
      taken_.push_back(operation);
  }
  // Puts without a record need an operation.
  void take_records(Peer& of) {
    std::lock_guard guard(of.send_lock);
    const DescriptorReference put =
        reference_to(interface_of(decode_handle(ni_))->find_descriptor(md_));
    uint32_t cookie = 0;
    while (of.awaited_puts.add({put, 0, PTL_CT_ACK_REQ, nullptr, 0}, cookie)) of.count_as_started();
  }
  int put(ptl_process_t to) {
    return PtlPut(md_, 0, sizeof memory_, PTL_ACK_REQ, to, 0, 0, 0, nullptr, 0);
  }
  void expect_event(ptl_event_kind_t type, ptl_ni_fail_t fail) {
    ptl_event_t event{};
    unsigned which = 0;
    must(PtlEQPoll(&events_, 1, static_cast<ptl_time_t>(test::wait_deadline.count()), &event,
                   &which));
    EXPECT_EQ(event.type, type);
    EXPECT_EQ(event.ni_fail_type, fail);
  }

  ptl_handle_eq_t events_{};
  ptl_handle_md_t md_{};
  std::byte memory_[100]{};
  std::vector<Operation*> taken_;
};

TEST_F(OperationLimitTest, APutWaitsUntilAnOperationEnds) {
  std::atomic<bool> returned{false};
  std::thread caller([&] {
    EXPECT_EQ(put(target()), PTL_OK);
    returned = true;
  });
  EXPECT_FALSE(wait_until([&] { return returned.load(); }, test::quiet_time));
  physical().initiator().operations().discard(*taken_.back());
  EXPECT_TRUE(wait_until([&] { return returned.load(); }));
  caller.join();
  EXPECT_EQ(received(1)[0].header.length(), sizeof memory_);
  expect_event(PTL_EVENT_SEND, PTL_NI_OK);
}

// The target may be a process that is stopped.
// spec 2.9
TEST_F(OperationLimitTest, APutEndsAsUndeliverableIfNoOperationEnds) {
  std::atomic<int> returned{0};
  std::thread caller([&] {
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(put(target()), PTL_OK);
      ++returned;
    }
  });
  // Only the first one waits: each of the others would take two seconds.
  const bool all_returned = wait_until([&] { return returned.load() == 100; });
  EXPECT_TRUE(all_returned) << returned.load();
  if (!all_returned) PtlAbort();
  caller.join();
  portals_aborted.store(false);
  for (int i = 0; i < 100; ++i) expect_event(PTL_EVENT_SEND, PTL_NI_UNDELIVERABLE);
  physical().initiator().operations().discard(*taken_.back());
  EXPECT_EQ(put(target()), PTL_OK);
  EXPECT_EQ(received(1)[0].header.length(), sizeof memory_);
}

// Ended operations stay with their peer in a chain, from which a sender can allocate without a
// lock.
TEST_F(OperationLimitTest, OperationsThatAnotherPeerKeepsAreTakenFromIt) {
  physical().poller().exclusively([&] {
    for (Operation* operation : taken_) {
      operation->peer.store(&peer());
      peer().count_as_started();
      physical().initiator().operations().end(*operation);
    }
    physical().initiator().operations().return_ended(peer());
  });
  ptl_process_t self{};
  must(PtlGetPhysId(ni_, &self));
  take_records(*physical().peers().find_or_connect({self.phys.nid, self.phys.pid}));
  EXPECT_EQ(put(self), PTL_OK);
  expect_event(PTL_EVENT_SEND, PTL_NI_OK);
  expect_event(PTL_EVENT_ACK, PTL_NI_DROPPED);
}

TEST_F(OperationLimitTest, ATriggeredPutEndsAsUndeliverable) {
  ptl_handle_ct_t counter{};
  must(PtlCTAlloc(ni_, &counter));
  must(PtlTriggeredPut(md_, 0, sizeof memory_, PTL_ACK_REQ, target(), 0, 0, 0, nullptr, 0, counter,
                       1));
  must(PtlCTInc(counter, {1, 0}));
  expect_event(PTL_EVENT_SEND, PTL_NI_UNDELIVERABLE);
}

// spec 3.5.3
TEST_F(OperationLimitTest, AbortEndsTheWait) {
  PtlAbort();
  EXPECT_EQ(put(target()), PTL_OK);
  portals_aborted.store(false);
  expect_event(PTL_EVENT_SEND, PTL_NI_UNDELIVERABLE);
}

}  // namespace
}  // namespace lintel
