// The life of objects, names and address vectors, event queues: man fi_domain, fi_endpoint, fi_av,
// fi_eq.
#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

template <typename Table>
void expect_no_null(const Table* table, const char* name) {
  ASSERT_NE(table, nullptr) << name;
  EXPECT_EQ(table->size, sizeof(Table)) << name;
  void* slots[sizeof(Table) / sizeof(void*)];
  std::memcpy(slots, table, sizeof slots);
  for (size_t i = 1; i < std::size(slots); ++i) EXPECT_NE(slots[i], nullptr) << name << " " << i;
}

TEST(ObjectsTest, NoSlotIsEmpty) {
  run_alone([](Rank&) {
    const Side side({.counters = true});
    expect_no_null(side.fabric()->ops, "fabric");
    expect_no_null(side.fabric()->fid.ops, "fabric object");
    expect_no_null(side.domain()->ops, "domain");
    expect_no_null(side.domain()->mr, "registration");
    expect_no_null(side.domain()->fid.ops, "domain object");
    expect_no_null(side.addresses()->ops, "addresses");
    expect_no_null(side.sent()->ops, "queue");
    expect_no_null(side.send_counter()->ops, "counter");
    const fid_ep* const endpoint = side.endpoint();
    expect_no_null(endpoint->ops, "endpoint");
    expect_no_null(endpoint->fid.ops, "endpoint object");
    expect_no_null(endpoint->cm, "cm");
    expect_no_null(endpoint->msg, "msg");
    expect_no_null(endpoint->tagged, "tagged");
    expect_no_null(endpoint->rma, "rma");
    expect_no_null(endpoint->atomic, "atomic");
    expect_no_null(endpoint->collective, "collective");
    fid_ep* opened = nullptr;
    const Info info = get_info(nullptr);
    must(fi_scalable_ep(side.domain(), info.get(), &opened, nullptr));
    const Owned<fid_ep> scalable(opened);
    expect_no_null(scalable->ops, "scalable endpoint");
    expect_no_null(scalable->fid.ops, "scalable endpoint object");
    expect_no_null(scalable->cm, "cm of a scalable endpoint");
    EXPECT_EQ(fi_scalable_ep(side.domain(), nullptr, &opened, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_barrier(side.endpoint(), 0, nullptr), -FI_ENOSYS);
    EXPECT_EQ(fi_trywait(side.fabric(), nullptr, 0), 0);
  });
}

TEST(ObjectsTest, ParentsStayWhileTheyHaveChildren) {
  run_alone([](Rank&) {
    const Side side({.counters = true});
    for (fid* const object : {&side.fabric()->fid, &side.domain()->fid, &side.addresses()->fid,
                              &side.sent()->fid, &side.received()->fid, &side.send_counter()->fid})
      EXPECT_EQ(fi_close(object), -FI_EBUSY);
  });
}

// As in a program with several clients of libfabric.
TEST(ObjectsTest, SeveralDomainsAndEndpointsInAProcess) {
  run_alone([](Rank&) {
    for (int round = 0; round < 3; ++round) {
      Side sides[3] = {Side({}), Side({}), Side({})};
      for (int i = 0; i < 3; ++i) sides[i].connect(sides[(i + 1) % 3].name());
      EXPECT_NE(sides[0].name(), sides[1].name());
      for (int i = 0; i < 3; ++i) {
        const uint64_t value = static_cast<uint64_t>(i);
        must(fi_tinject(sides[i].endpoint(), &value, 8, sides[i].peer(), 1));
      }
      for (int i = 0; i < 3; ++i) {
        uint64_t in = 99;
        Context context;
        must(fi_trecv(sides[i].endpoint(), &in, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context));
        EXPECT_EQ(sides[i].next(sides[i].received()).op_context, &context);
        EXPECT_EQ(in, static_cast<uint64_t>((i + 2) % 3));
      }
    }
  });
}

// The receiver of a message without a tag sees which endpoint of a process it came from.
TEST(ObjectsTest, DirectedReceivesDistinguishEndpoints) {
  run_alone([](Rank&) {
    Side receiver({});
    Side senders[2] = {Side({}), Side({})};
    for (Side& each : senders) each.connect(receiver.name());
    for (uint64_t i = 0; i < 2; ++i)
      must(fi_inject(senders[i].endpoint(), &i, 8, senders[i].peer()));
    for (uint64_t i = 2; i-- > 0;) {
      receiver.connect(senders[i].name());
      uint64_t in = 99;
      Context context;
      must(fi_recv(receiver.endpoint(), &in, 8, nullptr, receiver.peer(), &context));
      fi_addr_t source = 0;
      receiver.next(receiver.received(), &source);
      EXPECT_EQ(source, receiver.peer());
      EXPECT_EQ(in, i);
    }
  });
}

// What is posted when an endpoint is closed does not touch its memory later.
TEST(ObjectsTest, AnEndpointIsClosedWithReceivesPosted) {
  run_alone([](Rank&) {
    Side sender({});
    std::vector<std::byte> name;
    {
      const Side receiver({});
      name = receiver.name();
      sender.connect(name);
      std::vector<uint64_t> in(10000);
      std::vector<Context> contexts(in.size());
      for (size_t i = 0; i < in.size(); ++i)
        must(fi_trecv(receiver.endpoint(), &in[i], 8, nullptr, FI_ADDR_UNSPEC, i, 0, &contexts[i]));
      const uint64_t value = 1;
      must(fi_tinject(sender.endpoint(), &value, 8, sender.peer(), 99999));  // unexpected
    }
    Side again({});
    EXPECT_EQ(again.name(), name);  // the place is free
    uint64_t in = 0;
    Context context;
    must(fi_trecv(again.endpoint(), &in, 8, nullptr, FI_ADDR_UNSPEC, 0, ~uint64_t{0}, &context));
    again.expect_nothing(again.received());
    const uint64_t value = 7;
    must(fi_tinject(sender.endpoint(), &value, 8, sender.peer(), 3));
    EXPECT_EQ(again.next(again.received()).tag, 3);
    EXPECT_EQ(in, 7);
  });
}

TEST(ObjectsTest, NamesOfEndpoints) {
  run_alone([](Rank&) {
    const Side side({});
    size_t size = 0;
    EXPECT_EQ(fi_getname(&side.endpoint()->fid, nullptr, &size), -FI_ETOOSMALL);
    EXPECT_EQ(size, 16u);
    std::byte part[17] = {};
    size = 4;
    EXPECT_EQ(fi_getname(&side.endpoint()->fid, part, &size), -FI_ETOOSMALL);
    EXPECT_EQ(size, 16u);
    EXPECT_EQ(part[4], std::byte{0});
    fid_ep* fresh = nullptr;
    must(fi_endpoint(side.domain(), const_cast<fi_info*>(&side.info()), &fresh, nullptr));
    const Owned<fid_ep> owned(fresh);
    EXPECT_EQ(fi_getname(&fresh->fid, part, &size), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_enable(fresh), -FI_ENOAV);
    must(fi_ep_bind(fresh, &side.addresses()->fid, 0));
    EXPECT_EQ(fi_enable(fresh), -FI_ENOCQ);
  });
}

TEST(ObjectsTest, OptionsOfEndpoints) {
  run_alone([](Rank&) {
    const Side side({});
    fid* const endpoint = &side.endpoint()->fid;
    size_t value = 5000;
    must(fi_setopt(endpoint, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof value));
    value = 0;
    size_t size = sizeof value;
    must(fi_getopt(endpoint, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &size));
    EXPECT_EQ(value, 5000u);
    EXPECT_EQ(fi_setopt(endpoint, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, sizeof value),
              -FI_ENOPROTOOPT);
    uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
    must(fi_control(endpoint, FI_SETOPSFLAG, &flags));
    flags = FI_TRANSMIT;
    must(fi_control(endpoint, FI_GETOPSFLAG, &flags));
    EXPECT_EQ(flags, FI_DELIVERY_COMPLETE);
  });
}

TEST(AddressVectorTest, TablesAndMaps) {
  run_alone([](Rank&) {
    for (const fi_av_type type : {FI_AV_MAP, FI_AV_TABLE}) {
      const Side side({.vector = type});
      std::vector<std::byte> names = side.name();
      names.resize(48);  // the second is good, the third is none
      std::memcpy(names.data() + 16, names.data(), 16);
      fi_addr_t results[3] = {};
      EXPECT_EQ(fi_av_insert(side.addresses(), names.data(), 3, results, 0, nullptr), 2);
      EXPECT_EQ(results[2], FI_ADDR_NOTAVAIL);
      if (type == FI_AV_TABLE) {
        EXPECT_EQ(results[1], 1);
      }
      int errors[3] = {-1, -1, -1};
      EXPECT_EQ(fi_av_insert(side.addresses(), names.data(), 3, results, FI_SYNC_ERR, errors), 2);
      EXPECT_EQ(errors[1], 0);
      EXPECT_EQ(errors[2], FI_EINVAL);
      std::vector<std::byte> found(16);
      size_t size = found.size();
      must(fi_av_lookup(side.addresses(), results[1], found.data(), &size));
      EXPECT_EQ(size, 16u);
      EXPECT_EQ(found, side.name());
      char text[8];
      size = sizeof text;
      EXPECT_STREQ(fi_av_straddr(side.addresses(), found.data(), text, &size), "fi_lint");
      std::string whole(size, '\0');
      fi_av_straddr(side.addresses(), found.data(), whole.data(), &size);
      EXPECT_EQ(fi_av_insertsvc(side.addresses(), whole.c_str(), nullptr, results, 0, nullptr), 1);
      EXPECT_EQ(fi_av_insertsvc(side.addresses(), "host", "123", results, 0, nullptr), -FI_EINVAL);
      must(fi_av_remove(side.addresses(), results, 1, 0));
      if (type == FI_AV_TABLE) {
        EXPECT_EQ(fi_av_lookup(side.addresses(), results[0], found.data(), &size), -FI_EINVAL);
      }
      fi_av_attr shared{};
      shared.name = "shared";
      fid_av* other = nullptr;
      EXPECT_EQ(fi_av_open(side.domain(), &shared, &other, nullptr), -FI_ENOSYS);
    }
  });
}

TEST(AddressVectorTest, APlaceOfATableIsUsedAgain) {
  run_alone([](Rank&) {
    const Side side({.vector = FI_AV_TABLE});
    const std::vector<std::byte> name = side.name();
    const auto insert = [&] {
      fi_addr_t place = FI_ADDR_NOTAVAIL;
      EXPECT_EQ(fi_av_insert(side.addresses(), name.data(), 1, &place, 0, nullptr), 1);
      return place;
    };
    for (fi_addr_t i = 0; i < 4; ++i) EXPECT_EQ(insert(), i);
    fi_addr_t removed[2] = {2, 1};
    must(fi_av_remove(side.addresses(), removed, 2, 0));
    EXPECT_EQ(insert(), 1);
    EXPECT_EQ(insert(), 2);
    EXPECT_EQ(insert(), 4);
  });
}

TEST(AddressVectorTest, CompletionsReportUserIdentifiers) {
  run_alone([](Rank&) {
    for (const fi_av_type type : {FI_AV_MAP, FI_AV_TABLE}) {
      Side side({.vector = type});
      fi_addr_t address = 4711;
      const std::vector<std::byte> name = side.name();
      EXPECT_EQ(fi_av_insert(side.addresses(), name.data(), 1, &address, FI_AV_USER_ID, nullptr),
                1);
      const uint64_t value = 1;
      uint64_t in = 0;
      Context context;
      must(fi_recv(side.endpoint(), &in, 8, nullptr, FI_ADDR_UNSPEC, &context));
      must(fi_inject(side.endpoint(), &value, 8, address));
      fi_addr_t source = 0;
      side.next(side.received(), &source);
      EXPECT_EQ(source, 4711);
    }
  });
}

TEST(AddressVectorTest, NamesAsText) {
  run_alone([](Rank&) {
    const Info hints = make_hints();
    hints->addr_format = FI_ADDR_STR;
    const Info info = get_info(hints.get());
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->addr_format, FI_ADDR_STR);
    const Side with_queues({});
    fid_domain* domain = nullptr;
    must(fi_domain(with_queues.fabric(), info.get(), &domain, nullptr));
    const Owned<fid_domain> owned_domain(domain);
    fi_av_attr attr{};
    fid_av* vector = nullptr;
    must(fi_av_open(domain, &attr, &vector, nullptr));
    const Owned<fid_av> owned_vector(vector);
    fi_addr_t result = 0;
    const char* names[2] = {"fi_lintel://1:2:3", "fi_lintel://1:2"};
    EXPECT_EQ(fi_av_insert(vector, names, 2, nullptr, 0, nullptr), 1);
    EXPECT_EQ(fi_av_insert(vector, names, 1, &result, 0, nullptr), 1);
    char found[64];
    size_t size = sizeof found;
    must(fi_av_lookup(vector, result, found, &size));
    EXPECT_STREQ(found, names[0]);
    EXPECT_EQ(size, std::strlen(names[0]) + 1);
    char text[64];
    size = sizeof text;
    EXPECT_STREQ(fi_av_straddr(vector, found, text, &size), names[0]);
    EXPECT_EQ(size, std::strlen(names[0]) + 1);
  });
}

Owned<fid_eq> open_events(const Side& side) {
  fi_eq_attr attr{};
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_eq* events = nullptr;
  must(fi_eq_open(side.fabric(), &attr, &events, nullptr));
  return Owned<fid_eq>(events);
}

TEST(EventQueueTest, WhatIsWrittenIsRead) {
  run_alone([](Rank&) {
    const Side side({});
    const Owned<fid_eq> events = open_events(side);
    uint32_t kind = 0;
    fi_eq_entry entry{};
    EXPECT_EQ(fi_eq_read(events.get(), &kind, &entry, sizeof entry, 0), -FI_EAGAIN);
    EXPECT_EQ(fi_eq_sread(events.get(), &kind, &entry, sizeof entry, 5, 0), -FI_EAGAIN);
    entry.data = 7;
    EXPECT_EQ(fi_eq_write(events.get(), FI_NOTIFY, &entry, sizeof entry, 0), sizeof entry);
    entry.data = 0;
    EXPECT_EQ(fi_eq_read(events.get(), &kind, &entry, sizeof entry - 1, 0), -FI_ETOOSMALL);
    EXPECT_EQ(fi_eq_read(events.get(), &kind, &entry, sizeof entry, FI_PEEK), sizeof entry);
    EXPECT_EQ(entry.data, 7);
    EXPECT_EQ(fi_eq_sread(events.get(), &kind, &entry, sizeof entry, -1, 0), sizeof entry);
    EXPECT_EQ(kind, FI_NOTIFY);
    EXPECT_EQ(fi_eq_read(events.get(), &kind, &entry, sizeof entry, 0), -FI_EAGAIN);
  });
}

TEST(EventQueueTest, InsertionsAreReported) {
  run_alone([](Rank&) {
    const Side side({});
    const Owned<fid_eq> events = open_events(side);
    fi_av_attr attr{};
    attr.flags = FI_EVENT;
    fid_av* vector = nullptr;
    must(fi_av_open(side.domain(), &attr, &vector, nullptr));
    const Owned<fid_av> owned(vector);
    std::vector<std::byte> names = side.name();
    names.resize(32);
    fi_addr_t results[2] = {};
    int context = 0;
    EXPECT_EQ(fi_av_insert(vector, names.data(), 2, results, 0, &context), -FI_ENOEQ);
    must(fi_av_bind(vector, &events->fid, 0));
    EXPECT_EQ(fi_av_insert(vector, names.data(), 2, results, FI_SYNC_ERR, &context), -FI_EINVAL);
    EXPECT_EQ(fi_av_insert(vector, names.data(), 2, results, 0, &context), 0);
    uint32_t kind = 0;
    fi_eq_entry entry{};
    EXPECT_EQ(fi_eq_read(events.get(), &kind, &entry, sizeof entry, 0), -FI_EAVAIL);
    fi_eq_err_entry error{};
    EXPECT_EQ(fi_eq_readerr(events.get(), &error, 0), sizeof error);
    EXPECT_EQ(error.data, 1);
    EXPECT_EQ(error.context, &context);
    EXPECT_EQ(fi_eq_read(events.get(), &kind, &entry, sizeof entry, 0), sizeof entry);
    EXPECT_EQ(kind, FI_AV_COMPLETE);
    EXPECT_EQ(entry.data, 1);
    EXPECT_EQ(entry.context, &context);
  });
}

TEST(SharedContextTest, EndpointsSendThroughASharedContext) {
  run_alone([](Rank&) {
    const Info hints = make_hints();
    hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
    const Info info = get_info(hints.get());
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT);
    const Side side(Settings{});
    fid_stx* opened = nullptr;
    must(fi_stx_context(side.domain(), nullptr, &opened, nullptr));
    const Owned<fid_stx> shared(opened);
    EXPECT_EQ(fi_ep_bind(side.endpoint(), &opened->fid, 0), -FI_EOPBADSTATE);
    std::vector<Owned<fid_ep>> endpoints;
    for (int i = 0; i < 2; ++i) {
      fid_ep* endpoint = nullptr;
      must(fi_endpoint(side.domain(), info.get(), &endpoint, nullptr));
      endpoints.emplace_back(endpoint);
      must(fi_ep_bind(endpoint, &side.addresses()->fid, 0));
      must(fi_ep_bind(endpoint, &side.sent()->fid, FI_TRANSMIT | FI_RECV));
      EXPECT_EQ(fi_enable(endpoint), -FI_EOPBADSTATE);
      must(fi_ep_bind(endpoint, &opened->fid, 0));
      must(fi_enable(endpoint));
    }
    EXPECT_EQ(fi_close(&opened->fid), -FI_EBUSY);
    std::byte name[64];
    size_t size = sizeof name;
    must(fi_getname(&endpoints[1]->fid, name, &size));
    fi_addr_t peer = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(side.addresses(), name, 1, &peer, 0, nullptr), 1);
    uint64_t in = 0;
    const uint64_t value = 9;
    Context context;
    must(fi_trecv(endpoints[1].get(), &in, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &context));
    must(fi_tinject(endpoints[0].get(), &value, 8, peer, 1));
    EXPECT_EQ(side.next(side.sent()).op_context, &context);
    EXPECT_EQ(in, value);
  });
}

}  // namespace
}  // namespace lintel::test::ofi
