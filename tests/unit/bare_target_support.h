// The library as initiator, and a bare transport as target. The transport records requests and
// sends only the answers that a test requests.
#pragma once

#include <portals4.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "core/library/library.h"
#include "core/objects/network_interface.h"
#include "shm_test_support.h"
#include "support/objects.h"

namespace lintel::test {

class BareTargetTest : public ::testing::Test {
 protected:
  // Only once: a process cannot use Portals again after PtlFini (spec 3.5.1).
  static void SetUpTestSuite() {
    static const bool initialised = [] {
      isolate_segments();
      setenv("PTL_TRANSPORT", "local,shm", 1);
      must(PtlInit());
      unsetenv("PTL_TRANSPORT");
      return true;
    }();
    static_cast<void>(initialised);
  }
  void SetUp() override {
    must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                   nullptr, &ni_));
    target_ = open_transport(target_settings());
  }
  void TearDown() override {
    target_.reset();
    must(PtlNIFini(ni_));
  }

  // Settings with which the target can connect to the interface, as another process.
  [[nodiscard]] ShmSettings target_settings() const {
    ptl_process_t id{};
    must(PtlGetPhysId(ni_, &id));
    ShmSettings settings;
    settings.nid = id.phys.nid;
    settings.pid = PTL_PID_ANY;
    settings.memory_bytes = 1 << 20;
    settings.cma_threshold_bytes = 8192;
    return settings;
  }
  [[nodiscard]] ptl_process_t target() const {
    ptl_process_t id{};
    id.phys = {target_->id().nid, target_->id().pid};
    return id;
  }
  [[nodiscard]] PhysicalInterface& physical() const {
    return interface_of(decode_handle(ni_))->physical();
  }
  // The library's object for the target.
  [[nodiscard]] Peer& peer() const {
    return *physical().peers().find_or_connect({target_->id().nid, target_->id().pid});
  }

  // Polls until the target has received `count` requests, and returns all of them.
  const std::vector<RecordingSink::Received>& received(uint64_t count) {
    EXPECT_TRUE(wait_until([&] {
      target_->poll(sink_, 64);
      return sink_.total >= count;
    })) << sink_.total
        << " of " << count << " requests";
    return sink_.by_link.begin()->second;
  }

  ptl_handle_ni_t ni_{};
  std::unique_ptr<ShmTransport> target_;
  RecordingSink sink_;
};

}  // namespace lintel::test
