// Records exchanged by processes: invalid contents are rejected.
#include "verbs/resolver_record.h"

#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "util/crc32c.h"

namespace lintel {
namespace {

constexpr ProcessId somebody{0xc0a84d01, 17};

UdDestination roce_destination() {
  UdDestination destination;
  destination.gid.raw[15] = 1;
  destination.is_roce = true;
  destination.queue_pair = 0x123456;
  destination.q_key = 0x1234567;
  destination.mtu = 4096;
  return destination;
}

UdDestination infiniband_destination() {
  UdDestination destination = roce_destination();
  destination.is_roce = false;
  destination.lid = 7;
  return destination;
}

// The error found in a record after `change`, whose check is then corrected; empty if there is
// none.
std::string judged(const UdDestination& from,
                   const std::function<void(ResolverRecord&)>& change = {}) {
  ResolverRecord record = make_record(somebody, from);
  if (change) {
    change(record);
    record.check = crc32c(~0u, &record, offsetof(ResolverRecord, check));
  }
  UdDestination to;
  const char* const wrong = read_record(record, somebody, from.is_roce, to);
  return wrong == nullptr ? "" : wrong;
}

TEST(ResolverRecordTest, CarriesWhereDatagramsGo) {
  for (const UdDestination& from : {roce_destination(), infiniband_destination()}) {
    UdDestination to;
    ASSERT_EQ(read_record(make_record(somebody, from), somebody, from.is_roce, to), nullptr);
    EXPECT_EQ(std::memcmp(&to.gid, &from.gid, sizeof to.gid), 0);
    EXPECT_EQ(to.lid, from.lid);
    EXPECT_EQ(to.is_roce, from.is_roce);
    EXPECT_EQ(to.queue_pair, from.queue_pair);
    EXPECT_EQ(to.q_key, from.q_key);
    EXPECT_EQ(to.mtu, from.mtu);
  }
}

TEST(ResolverRecordTest, EveryDamagedBitIsNoticed) {
  const ResolverRecord whole = make_record(somebody, roce_destination());
  for (size_t bit = 0; bit < sizeof whole * 8; ++bit) {
    ResolverRecord record = whole;
    reinterpret_cast<unsigned char*>(&record)[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    UdDestination to;
    EXPECT_NE(read_record(record, somebody, true, to), nullptr) << bit;
  }
}

TEST(ResolverRecordTest, WhatCannotBeIsRefusedAlthoughItsCheckIsGood) {
  const UdDestination roce = roce_destination();
  EXPECT_EQ(judged(roce, [](ResolverRecord&) {}), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { ++r.version; }).find("another version"),
            std::string::npos);
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { ++r.pid; }).find("another process"),
            std::string::npos);
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { ++r.nid; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { r.queue_pair = 1; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { r.queue_pair = 1u << 24; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { r.q_key = 1u << 31; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { r.mtu = 511; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { r.mtu = 65537; }), "");
  EXPECT_NE(judged(roce, [](ResolverRecord& r) { std::memset(r.gid, 0, sizeof r.gid); }), "");
  const UdDestination infiniband = infiniband_destination();
  EXPECT_NE(judged(infiniband, [](ResolverRecord& r) { r.lid = 0; }), "");
  EXPECT_NE(judged(infiniband, [](ResolverRecord& r) { r.lid = 0xc000; }), "");
}

TEST(ResolverRecordTest, NetworksOfTheOtherKindCannotBeReached) {
  UdDestination to;
  const char* wrong =
      read_record(make_record(somebody, infiniband_destination()), somebody, true, to);
  EXPECT_STREQ(wrong, "its device is on InfiniBand and ours on Ethernet");
  wrong = read_record(make_record(somebody, roce_destination()), somebody, false, to);
  EXPECT_STREQ(wrong, "its device is on Ethernet and ours on InfiniBand");
}

}  // namespace
}  // namespace lintel
