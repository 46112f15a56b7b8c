// Requests and calls of programs that use libfabric, each as its source has them: hints of
// fi_getinfo, how objects are bound, and one exchange.
#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

constexpr uint64_t all_orders = FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
                                FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

struct Client {
  const char* name;
  uint32_t version;
  uint64_t caps;
  uint64_t mode;
  int mr_mode;
  void (*change)(fi_info& hints);  // what else it requests
};

// A program that takes what it is granted compares these with its hints.
void expect_granted(const Client& client, const fi_info& hints, const fi_info& info) {
  SCOPED_TRACE(client.name);
  EXPECT_EQ(info.caps & hints.caps, hints.caps);
  EXPECT_EQ(info.mode & ~hints.mode, 0);
  EXPECT_EQ(info.domain_attr->mr_mode & ~hints.domain_attr->mr_mode, 0);
  EXPECT_EQ(info.tx_attr->msg_order & hints.tx_attr->msg_order, hints.tx_attr->msg_order);
  EXPECT_EQ(info.tx_attr->op_flags, hints.tx_attr->op_flags);
  EXPECT_GE(info.tx_attr->inject_size, hints.tx_attr->inject_size);
  EXPECT_GE(info.domain_attr->cq_data_size, hints.domain_attr->cq_data_size);
  EXPECT_GE(info.domain_attr->mr_key_size, hints.domain_attr->mr_key_size);
  if (hints.domain_attr->threading != FI_THREAD_UNSPEC) {
    EXPECT_EQ(info.domain_attr->threading, hints.domain_attr->threading);
  }
  if (hints.domain_attr->data_progress != FI_PROGRESS_UNSPEC) {
    EXPECT_EQ(info.domain_attr->data_progress, hints.domain_attr->data_progress);
  }
}

TEST(ClientTest, HintsOfKnownPrograms) {
  constexpr int basic = FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  constexpr uint64_t contexts = FI_CONTEXT | FI_CONTEXT2;
  const Client clients[] = {
      {"Open MPI 5, mtl", FI_VERSION(1, 9),
       FI_TAGGED | FI_MSG | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV, contexts, 0,
       [](fi_info& hints) {
         hints.tx_attr->msg_order = hints.rx_attr->msg_order = FI_ORDER_SAS;
         hints.tx_attr->op_flags = hints.rx_attr->op_flags = FI_COMPLETION;
         hints.domain_attr->cq_data_size = 4;
         hints.domain_attr->threading = FI_THREAD_SAFE;
         hints.domain_attr->resource_mgmt = FI_RM_ENABLED;
       }},
      {"Open MPI, btl", FI_VERSION(1, 5), FI_RMA | FI_ATOMIC | FI_MSG, contexts,
       basic | FI_MR_ENDPOINT,
       [](fi_info& hints) {
         hints.tx_attr->op_flags = FI_DELIVERY_COMPLETE;
         hints.domain_attr->control_progress = FI_PROGRESS_UNSPEC;
         hints.domain_attr->av_type = FI_AV_MAP;
       }},
      {"MPICH", FI_VERSION(1, 17),
       FI_TAGGED | FI_MSG | FI_MULTI_RECV | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_NAMED_RX_CTX,
       contexts | FI_ASYNC_IOV | FI_RX_CQ_DATA, 0,
       [](fi_info& hints) {
         hints.domain_attr->threading = FI_THREAD_DOMAIN;
         hints.domain_attr->control_progress = FI_PROGRESS_MANUAL;
         hints.domain_attr->data_progress = FI_PROGRESS_MANUAL;
         hints.domain_attr->resource_mgmt = FI_RM_ENABLED;
         hints.domain_attr->av_type = FI_AV_TABLE;
         hints.domain_attr->mode = FI_RESTRICTED_COMP;
         hints.domain_attr->cq_data_size = 4;
         hints.tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
         hints.tx_attr->msg_order = all_orders;
       }},
      {"Sandia OpenSHMEM", FI_VERSION(1, 5), FI_RMA | FI_ATOMIC | FI_RMA_EVENT, 0, 0,
       [](fi_info& hints) {
         hints.domain_attr->mr_key_size = 1;
         hints.domain_attr->data_progress = FI_PROGRESS_AUTO;
         hints.domain_attr->threading = FI_THREAD_SAFE;
         hints.domain_attr->resource_mgmt = FI_RM_ENABLED;
         hints.tx_attr->op_flags = FI_DELIVERY_COMPLETE;
         hints.tx_attr->inject_size = 16;
       }},
      {"GASNet, ofi-conduit", FI_VERSION(1, 5), FI_RMA | FI_MSG | FI_MULTI_RECV, FI_CONTEXT,
       basic | FI_MR_ENDPOINT,
       [](fi_info& hints) {
         hints.domain_attr->threading = FI_THREAD_DOMAIN;
         hints.domain_attr->control_progress = FI_PROGRESS_MANUAL;
         hints.domain_attr->resource_mgmt = FI_RM_ENABLED;
       }},
      {"NCCL plug-in", FI_VERSION(1, 17),
       FI_TAGGED | FI_MSG | FI_RMA | FI_HMEM | FI_LOCAL_COMM | FI_REMOTE_COMM, contexts,
       FI_MR_LOCAL | FI_MR_HMEM | basic | FI_MR_ENDPOINT,
       [](fi_info& hints) {
         hints.tx_attr->msg_order = hints.rx_attr->msg_order = FI_ORDER_SAS;
         hints.domain_attr->control_progress = FI_PROGRESS_AUTO;
         hints.domain_attr->data_progress = FI_PROGRESS_AUTO;
         hints.domain_attr->cq_data_size = 4;
       }},
      {"Mercury", FI_VERSION(1, 13),
       FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR,
       contexts, basic | FI_MR_LOCAL,
       [](fi_info& hints) {
         hints.domain_attr->threading = FI_THREAD_SAFE;
         hints.domain_attr->av_type = FI_AV_MAP;
         hints.tx_attr->op_flags = FI_INJECT_COMPLETE;
       }},
      {"Charm++", FI_VERSION(1, 5), FI_TAGGED | FI_RMA | FI_DIRECTED_RECV, contexts, basic,
       [](fi_info& hints) {
         hints.domain_attr->threading = FI_THREAD_SAFE;
         hints.domain_attr->av_type = FI_AV_MAP;
         hints.domain_attr->resource_mgmt = FI_RM_ENABLED;
       }},
      {"Chapel", FI_VERSION(1, 9), FI_MSG | FI_MULTI_RECV | FI_RMA | FI_ATOMIC | FI_RMA_EVENT,
       contexts, basic,
       [](fi_info& hints) {
         hints.tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
         hints.rx_attr->op_flags = FI_COMPLETION;
         hints.tx_attr->msg_order = hints.rx_attr->msg_order = FI_ORDER_RAW | FI_ORDER_WAW;
         hints.domain_attr->threading = FI_THREAD_COMPLETION;
         hints.domain_attr->av_type = FI_AV_TABLE;
       }},
      {"Intel MPI", FI_VERSION(1, 6),
       FI_TAGGED | FI_MSG | FI_MULTI_RECV | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV,
       contexts | FI_ASYNC_IOV, 0,
       [](fi_info& hints) {
         hints.domain_attr->threading = FI_THREAD_ENDPOINT;
         hints.domain_attr->av_type = FI_AV_TABLE;
         hints.tx_attr->msg_order = hints.rx_attr->msg_order = FI_ORDER_SAS;
       }},
  };
  run_alone([&](Rank&) {
    for (const Client& client : clients) {
      const Info hints = make_hints();
      hints->caps = client.caps;
      hints->mode = client.mode;
      hints->domain_attr->mr_mode = client.mr_mode;
      client.change(*hints);
      const Info info = get_info(hints.get(), client.version);
      ASSERT_NE(info, nullptr) << client.name;
      expect_granted(client, *hints, *info);
    }
  });
}

template <typename Object, typename Open>
Owned<Object> open(Open&& call) {
  Object* object = nullptr;
  must(call(&object));
  return Owned<Object>(object);
}

// Fabric, domain and address vector of a program, and endpoints as it opens them.
class Program {
 public:
  explicit Program(const fi_info* hints, uint32_t version = FI_VERSION(1, 5))
      : info_(get_info(hints, version)) {
    if (info_ == nullptr) Rank::current().fail("fi_getinfo returns nothing");
    fabric_ =
        open<fid_fabric>([&](auto** to) { return fi_fabric(info_->fabric_attr, to, nullptr); });
    domain_ = open<fid_domain>(
        [&](auto** to) { return fi_domain(fabric_.get(), info_.get(), to, nullptr); });
    fi_av_attr attr{};
    addresses_ =
        open<fid_av>([&](auto** to) { return fi_av_open(domain_.get(), &attr, to, nullptr); });
  }

  [[nodiscard]] Owned<fid_ep> open_endpoint() {
    auto endpoint = open<fid_ep>(
        [&](auto** to) { return fi_endpoint(domain_.get(), info_.get(), to, nullptr); });
    must(fi_ep_bind(endpoint.get(), &addresses_->fid, 0));
    return endpoint;
  }
  [[nodiscard]] Owned<fid_cq> open_queue(fi_cq_format format) {
    fi_cq_attr attr{};
    attr.format = format;
    return open<fid_cq>([&](auto** to) { return fi_cq_open(domain_.get(), &attr, to, nullptr); });
  }
  [[nodiscard]] Owned<fid_cntr> open_counter() {
    fi_cntr_attr attr{};
    attr.wait_obj = FI_WAIT_UNSPEC;
    return open<fid_cntr>(
        [&](auto** to) { return fi_cntr_open(domain_.get(), &attr, to, nullptr); });
  }
  // The name of an endpoint, inserted. The length of the name is unknown before.
  [[nodiscard]] fi_addr_t address_of(fid_ep* endpoint, uint64_t flags = 0) {
    size_t size = 0;
    must(fi_getname(&endpoint->fid, nullptr, &size) + FI_ETOOSMALL);
    std::vector<std::byte> name(size);
    must(fi_getname(&endpoint->fid, name.data(), &size));
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    must(fi_av_insert(addresses_.get(), name.data(), 1, &address, flags, nullptr) - 1);
    return address;
  }
  [[nodiscard]] fid_domain* domain() { return domain_.get(); }
  [[nodiscard]] fi_info& info() { return *info_; }

 private:
  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> addresses_;
};

template <typename Entry>
Entry next(fid_cq* queue) {
  Entry entry{};
  await_progress(
      "a completion",
      [&] {
        const ssize_t code = fi_cq_read(queue, &entry, 1);
        if (code != -FI_EAGAIN) must(code - 1);
        return code == 1;
      },
      Place::current());
  return entry;
}

Info hints_of_shmem(uint64_t caps) {
  Info hints = make_hints();
  hints->caps = caps;
  hints->mode = 0;
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->mr_key_size = 1;
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->tx_attr->inject_size = 16;
  return hints;
}

// Sandia OpenSHMEM: a context on a shared transmit context, whose counters tell of the end of puts
// and gets; a target endpoint; one region of all memory, whose counter tells of what peers write.
TEST(ClientTest, CallsOfSandiaOpenShmem) {
  run_alone([](Rank&) {
    Program program(hints_of_shmem(FI_RMA | FI_ATOMIC | FI_RMA_EVENT).get());
    fi_info& info = program.info();
    const auto shared = open<fid_stx>(
        [&](auto** to) { return fi_stx_context(program.domain(), info.tx_attr, to, nullptr); });
    const auto remote = program.open_counter();
    const auto region = open<fid_mr>([&](auto** to) {
      return fi_mr_reg(program.domain(), nullptr, SIZE_MAX, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0,
                       0, to, nullptr);
    });
    must(fi_mr_bind(region.get(), &remote->fid, FI_REMOTE_WRITE));
    must(fi_mr_enable(region.get()));
    info.caps = FI_RMA | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE;
    info.tx_attr->op_flags = 0;
    const auto target = program.open_endpoint();
    must(fi_enable(target.get()));
    const fi_addr_t peer = program.address_of(target.get());

    info.ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
    info.caps = FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_RECV;
    info.tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    const auto puts = program.open_counter();
    const auto gets = program.open_counter();
    const auto queue = program.open_queue(FI_CQ_FORMAT_CONTEXT);
    const auto context = program.open_endpoint();
    must(fi_ep_bind(context.get(), &shared->fid, 0));
    must(fi_ep_bind(context.get(), &puts->fid, FI_WRITE));
    must(fi_ep_bind(context.get(), &gets->fid, FI_READ));
    must(fi_ep_bind(context.get(), &queue->fid, FI_SELECTIVE_COMPLETION | FI_TRANSMIT | FI_RECV));
    must(fi_enable(context.get()));

    long double wide[2] = {2.5L, 0};
    const auto at = [](const void* place) { return reinterpret_cast<uint64_t>(place); };
    must(fi_inject_write(context.get(), &wide[0], sizeof wide[0], peer, at(&wide[1]), 0));
    uint64_t numbers[4] = {7, 0, 5, 0};
    must(fi_write(context.get(), &numbers[0], 8, nullptr, peer, at(&numbers[1]), 0, nullptr));
    must(fi_inject_atomic(context.get(), &numbers[0], 1, peer, at(&numbers[2]), 0, FI_UINT64,
                          FI_SUM));
    must(fi_cntr_wait(puts.get(), 3, -1));
    must(fi_cntr_wait(remote.get(), 3, -1));
    EXPECT_EQ(wide[1], 2.5L);
    EXPECT_EQ(numbers[1], 7);
    EXPECT_EQ(numbers[2], 12);
    const uint64_t swap = 20;
    const uint64_t comparand = 12;
    must(fi_compare_atomic(context.get(), &swap, 1, nullptr, &comparand, nullptr, &numbers[3],
                           nullptr, peer, at(&numbers[2]), 0, FI_UINT64, FI_CSWAP, nullptr));
    must(fi_read(context.get(), &numbers[1], 8, nullptr, peer, at(&numbers[0]), 0, nullptr));
    must(fi_cntr_wait(gets.get(), 2, -1));
    EXPECT_EQ(numbers[2], 20);
    EXPECT_EQ(numbers[3], 12);
    // A put that is copied first: its entry says that the copy may be used again.
    Context bounced;
    const iovec from = {numbers, 8};
    const fi_rma_iov to = {at(&numbers[3]), 8, 0};
    fi_msg_rma message{};
    message.msg_iov = &from;
    message.iov_count = 1;
    message.addr = peer;
    message.rma_iov = &to;
    message.rma_iov_count = 1;
    message.context = &bounced;
    must(fi_writemsg(context.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE));
    EXPECT_EQ(next<fi_cq_entry>(queue.get()).op_context, &bounced);
    EXPECT_EQ(numbers[3], 7);
    EXPECT_EQ(fi_cntr_read(puts.get()), 4);
  });
}

TEST(ClientTest, AtomicsOfSandiaOpenShmem) {
  run_alone([](Rank&) {
    Program program(hints_of_shmem(FI_RMA | FI_ATOMIC).get());
    const auto queue = program.open_queue(FI_CQ_FORMAT_CONTEXT);
    const auto endpoint = program.open_endpoint();
    must(fi_ep_bind(endpoint.get(), &queue->fid, FI_TRANSMIT | FI_RECV));
    must(fi_enable(endpoint.get()));
    size_t count = 0;
    for (const fi_datatype type : {FI_INT32, FI_INT64, FI_UINT32, FI_UINT64}) {
      for (const fi_op op : {FI_SUM, FI_BAND, FI_BOR, FI_BXOR, FI_ATOMIC_WRITE, FI_MIN, FI_MAX})
        EXPECT_EQ(fi_atomicvalid(endpoint.get(), type, op, &count), 0) << type << ' ' << op;
      for (const fi_op op : {FI_SUM, FI_BAND, FI_ATOMIC_READ, FI_ATOMIC_WRITE})
        EXPECT_EQ(fi_fetch_atomicvalid(endpoint.get(), type, op, &count), 0) << type << ' ' << op;
      for (const fi_op op : {FI_CSWAP, FI_MSWAP})
        EXPECT_EQ(fi_compare_atomicvalid(endpoint.get(), type, op, &count), 0) << type << ' ' << op;
    }
    for (const fi_datatype type :
         {FI_FLOAT, FI_DOUBLE, FI_LONG_DOUBLE, FI_FLOAT_COMPLEX, FI_DOUBLE_COMPLEX})
      EXPECT_EQ(fi_atomicvalid(endpoint.get(), type, FI_SUM, &count), 0) << type;
  });
}

// GASNet: endpoints for requests, replies and RMA, with queues of their own; buffers for several
// messages; the region of the segment is bound to the endpoint for RMA.
TEST(ClientTest, CallsOfGasnet) {
  run_alone([](Rank&) {
    const Info hints = make_hints();
    hints->caps = FI_RMA | FI_MSG | FI_MULTI_RECV;
    hints->mode = FI_CONTEXT;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->mr_mode =
        FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    Program program(hints.get());
    const int granted = program.info().domain_attr->mr_mode;
    const auto sent = program.open_queue(FI_CQ_FORMAT_DATA);
    const auto requested = program.open_queue(FI_CQ_FORMAT_DATA);
    const auto replied = program.open_queue(FI_CQ_FORMAT_DATA);
    const auto moved = program.open_queue(FI_CQ_FORMAT_CONTEXT);
    const auto requests = program.open_endpoint();
    const auto replies = program.open_endpoint();
    const auto memory = program.open_endpoint();
    must(fi_ep_bind(requests.get(), &sent->fid, FI_TRANSMIT));
    must(fi_ep_bind(requests.get(), &requested->fid, FI_RECV));
    must(fi_ep_bind(replies.get(), &sent->fid, FI_TRANSMIT));
    must(fi_ep_bind(replies.get(), &replied->fid, FI_RECV));
    must(fi_ep_bind(memory.get(), &moved->fid, FI_TRANSMIT | FI_RECV));
    const size_t longest = 1000;
    for (fid_ep* const each : {requests.get(), replies.get()})
      must(fi_setopt(&each->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &longest, sizeof longest));
    for (fid_ep* const each : {requests.get(), replies.get(), memory.get()}) must(fi_enable(each));
    const fi_addr_t to_requests = program.address_of(requests.get(), FI_MORE);
    const fi_addr_t to_replies = program.address_of(replies.get(), FI_MORE);
    const fi_addr_t to_memory = program.address_of(memory.get());

    std::vector<std::byte> segment(20000);
    const auto region = open<fid_mr>([&](auto** to) {
      return fi_mr_reg(program.domain(), segment.data(), segment.size(),
                       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, to, nullptr);
    });
    if ((granted & FI_MR_ENDPOINT) != 0) {
      must(fi_mr_bind(region.get(), &memory->fid, 0));
      must(fi_mr_enable(region.get()));
    }
    const uint64_t base =
        (granted & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<uint64_t>(segment.data()) : 0;

    // One buffer for several requests.
    std::vector<std::byte> buffer(4 * longest);
    fi_context contexts[3] = {};
    const iovec piece = {buffer.data(), buffer.size()};
    fi_msg post{};
    post.msg_iov = &piece;
    post.iov_count = 1;
    post.addr = FI_ADDR_UNSPEC;
    post.context = &contexts[0];
    must(fi_recvmsg(requests.get(), &post, FI_MULTI_RECV));
    const std::vector<std::byte> request = bytes(longest, 1);
    must(fi_inject(requests.get(), request.data(), 100, to_requests));
    must(fi_send(requests.get(), request.data(), longest, nullptr, to_requests, &contexts[1]));
    const std::byte* place = buffer.data();
    for (const size_t length : {size_t{100}, longest}) {
      const auto entry = next<fi_cq_data_entry>(requested.get());
      EXPECT_EQ(entry.op_context, &contexts[0]);
      EXPECT_EQ(entry.len, length);
      EXPECT_EQ(memcmp(entry.buf, request.data(), length), 0);
      EXPECT_GE(static_cast<std::byte*>(entry.buf), place);
      place = static_cast<std::byte*>(entry.buf) + length;
    }
    EXPECT_EQ(next<fi_cq_data_entry>(sent.get()).op_context, &contexts[1]);
    // A reply comes to the endpoint for replies only.
    std::vector<std::byte> answer(longest);
    must(fi_recv(replies.get(), answer.data(), answer.size(), nullptr, FI_ADDR_UNSPEC,
                 &contexts[2]));
    must(fi_inject(replies.get(), request.data(), 64, to_replies));
    EXPECT_EQ(next<fi_cq_data_entry>(replied.get()).len, 64);

    const std::vector<std::byte> out = bytes(segment.size(), 3);
    const iovec from = {const_cast<std::byte*>(out.data()), out.size()};
    const fi_rma_iov to = {base, out.size(), fi_mr_key(region.get())};
    fi_msg_rma put{};
    put.msg_iov = &from;
    put.iov_count = 1;
    put.addr = to_memory;
    put.rma_iov = &to;
    put.rma_iov_count = 1;
    put.context = &contexts[1];
    must(fi_writemsg(memory.get(), &put, FI_DELIVERY_COMPLETE));
    EXPECT_EQ(next<fi_cq_entry>(moved.get()).op_context, &contexts[1]);
    EXPECT_EQ(segment, out);
    std::vector<std::byte> in(5000);
    must(fi_read(memory.get(), in.data(), in.size(), nullptr, to_memory, base + 777,
                 fi_mr_key(region.get()), &contexts[2]));
    EXPECT_EQ(next<fi_cq_entry>(moved.get()).op_context, &contexts[2]);
    EXPECT_EQ(memcmp(in.data(), out.data() + 777, in.size()), 0);
    EXPECT_EQ(fi_cancel(&requests->fid, &contexts[0]), 0);
  });
}

// Rights of local access only, as programs for FI_MR_LOCAL register buffers.
TEST(ClientTest, RegionsForLocalAccess) {
  run_alone([](Rank&) {
    const Side side({});
    std::vector<std::byte> buffer(100);
    uint64_t key = 0;
    for (const auto access : {FI_SEND | FI_RECV, FI_READ | FI_WRITE, FI_SEND, 0ULL}) {
      const auto region = open<fid_mr>([&](auto** to) {
        return fi_mr_reg(side.domain(), buffer.data(), buffer.size(), access, 0, ++key, 0, to,
                         nullptr);
      });
      EXPECT_NE(fi_mr_desc(region.get()), nullptr);
    }
  });
}

}  // namespace
}  // namespace lintel::test::ofi
