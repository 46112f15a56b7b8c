// The stand-in for libibverbs itself: what it executes and what it refuses, according to the
// specification of InfiniBand. Other tests rely on it.
#include "support/fake_verbs/fake_verbs.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace lintel {
namespace {

// A device with one completion queue for all completions.
class Side {
 public:
  explicit Side(int completions = 64) {
    int count = 0;
    ibv_device** const devices = ibv_get_device_list(&count);
    EXPECT_GE(count, 1);
    context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    domain = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
    queue = ibv_create_cq(context, completions, nullptr, channel, 0);
    memory.resize(16384);
    region = ibv_reg_mr(domain, memory.data(), memory.size(),
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_MW_BIND);
  }
  ~Side() {
    if (pair != nullptr) ibv_destroy_qp(pair);
    if (shared != nullptr) ibv_destroy_srq(shared);
    ibv_dereg_mr(region);
    ibv_destroy_cq(queue);
    ibv_destroy_comp_channel(channel);
    ibv_dealloc_pd(domain);
    ibv_close_device(context);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void make_pair(ibv_qp_type type, bool shares = false) {
    if (shares) {
      ibv_srq_init_attr wanted{};
      wanted.attr = {4, 1, 0};
      shared = ibv_create_srq(domain, &wanted);
    }
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue;
    wanted.srq = shared;
    wanted.qp_type = type;
    wanted.cap = {4, 4, 2, 2, 64};
    pair = ibv_create_qp(domain, &wanted);
    ASSERT_NE(pair, nullptr);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qkey = 7;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    const int more = type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    ASSERT_EQ(
        ibv_modify_qp(pair, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | more), 0);
  }

  ibv_ah_attr way() const {
    ibv_ah_attr attributes{};
    attributes.is_global = 1;
    attributes.port_num = 1;
    EXPECT_EQ(ibv_query_gid(context, 1, 0, &attributes.grh.dgid), 0);
    return attributes;
  }

  void connect(const Side& other, uint32_t expected_packet = 100) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = other.pair->qp_num;
    attributes.rq_psn = expected_packet;
    attributes.max_dest_rd_atomic = 4;
    attributes.ah_attr = other.way();
    ASSERT_EQ(ibv_modify_qp(pair, &attributes,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attributes = {};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = 100;
    attributes.max_rd_atomic = 4;
    ASSERT_EQ(ibv_modify_qp(pair, &attributes,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

  void start_datagrams() {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(ibv_modify_qp(pair, &attributes, IBV_QP_STATE), 0);
    attributes.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(ibv_modify_qp(pair, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  }

  ibv_sge piece(size_t offset, size_t length) {
    return {reinterpret_cast<uint64_t>(memory.data() + offset), static_cast<uint32_t>(length),
            region->lkey};
  }

  int post_receive(uint64_t id, size_t offset, size_t length) {
    ibv_sge element = piece(offset, length);
    ibv_recv_wr request{};
    request.wr_id = id;
    request.sg_list = &element;
    request.num_sge = 1;
    ibv_recv_wr* refused = nullptr;
    return shared != nullptr ? ibv_post_srq_recv(shared, &request, &refused)
                             : ibv_post_recv(pair, &request, &refused);
  }

  int post(ibv_send_wr request, std::vector<ibv_sge> pieces) {
    request.sg_list = pieces.data();
    request.num_sge = static_cast<int>(pieces.size());
    ibv_send_wr* refused = nullptr;
    return ibv_post_send(pair, &request, &refused);
  }

  int send(uint64_t id, size_t offset, size_t length, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr request{};
    request.wr_id = id;
    request.opcode = IBV_WR_SEND_WITH_IMM;
    request.imm_data = 0x1234;
    request.send_flags = flags;
    return post(request, {piece(offset, length)});
  }

  int access(ibv_wr_opcode opcode, uint64_t id, size_t offset, size_t length, uint64_t address,
             uint32_t key) {
    ibv_send_wr request{};
    request.wr_id = id;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {address, key};
    return post(request, {piece(offset, length)});
  }

  // Returns the completion; there must be exactly one.
  ibv_wc completion() {
    ibv_wc all[2]{};
    EXPECT_EQ(ibv_poll_cq(queue, 2, all), 1);
    return all[0];
  }
  bool is_quiet() {
    ibv_wc one;
    return ibv_poll_cq(queue, 1, &one) == 0;
  }

  void fill(uint8_t start) { std::iota(memory.begin(), memory.end(), start); }
  uint64_t address(size_t offset) { return reinterpret_cast<uint64_t>(memory.data() + offset); }

  ibv_context* context;
  ibv_pd* domain;
  ibv_comp_channel* channel;
  ibv_cq* queue;
  ibv_srq* shared = nullptr;
  ibv_qp* pair = nullptr;
  std::vector<uint8_t> memory;
  ibv_mr* region;
};

class FakeVerbsTest : public testing::Test {
 protected:
  void SetUp() override { fake_verbs::reset(); }
  void TearDown() override {
    left_.reset();
    right_.reset();
    EXPECT_EQ(fake_verbs::in_use(), fake_verbs::InUse{});
    expect_no_violations();
  }
  void expect_no_violations() {
    for (const std::string& text : fake_verbs::violations())
      if (!violations_expected_) ADD_FAILURE() << text;
  }

  // Makes two connected queue pairs.
  void connect(bool shares = false) {
    left_ = std::make_unique<Side>();
    right_ = std::make_unique<Side>();
    left_->make_pair(IBV_QPT_RC);
    right_->make_pair(IBV_QPT_RC, shares);
    left_->connect(*right_);
    right_->connect(*left_);
    left_->fill(1);
  }

  bool same(size_t from, size_t to, size_t length) const {
    return std::memcmp(left_->memory.data() + from, right_->memory.data() + to, length) == 0;
  }

  std::unique_ptr<Side> left_, right_;
  bool violations_expected_ = false;
};

TEST_F(FakeVerbsTest, DescribesItsDevices) {
  fake_verbs::reset({.devices = 2, .ipv4 = 0x0a000001});
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  ASSERT_EQ(count, 2);
  EXPECT_STREQ(ibv_get_device_name(devices[1]), "fake1");
  ibv_context* const context = ibv_open_device(devices[1]);
  ibv_free_device_list(devices);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  ibv_gid_entry rows[4];
  ASSERT_EQ(ibv_query_gid_table(context, rows, 4, 0), 1);
  EXPECT_EQ(rows[0].gid.raw[15], 2);
  EXPECT_EQ(rows[0].gid_type, static_cast<uint32_t>(IBV_GID_TYPE_ROCE_V2));
  __be16 pkey = 0;
  ASSERT_EQ(ibv_query_pkey(context, 1, 0, &pkey), 0);
  EXPECT_EQ(pkey, 0xffff);
  ibv_close_device(context);
}

TEST_F(FakeVerbsTest, MessagesArrive) {
  connect();
  ASSERT_EQ(right_->post_receive(5, 100, 50), 0);
  ASSERT_EQ(left_->send(6, 10, 50), 0);
  const ibv_wc sent = left_->completion();
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent.wr_id, 6u);
  const ibv_wc received = right_->completion();
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.wr_id, 5u);
  EXPECT_EQ(received.byte_len, 50u);
  EXPECT_EQ(received.imm_data, 0x1234u);
  EXPECT_EQ(received.qp_num, right_->pair->qp_num);
  EXPECT_EQ(received.src_qp, left_->pair->qp_num);
  EXPECT_TRUE(same(10, 100, 50));
}

TEST_F(FakeVerbsTest, InlineDataAreTakenWhenPosted) {
  connect();
  ASSERT_EQ(left_->send(1, 10, 50, IBV_SEND_INLINE | IBV_SEND_SIGNALED), 0);
  const std::vector<uint8_t> before = left_->memory;
  left_->fill(99);
  ASSERT_EQ(right_->post_receive(2, 0, 64), 0);
  EXPECT_EQ(right_->completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(before.data() + 10, right_->memory.data(), 50), 0);
  EXPECT_EQ(left_->send(1, 10, 65, IBV_SEND_INLINE), EINVAL);
}

TEST_F(FakeVerbsTest, AReceiverThatIsNotReadyIsWaitedFor) {
  connect(true);
  ASSERT_EQ(left_->send(1, 0, 8), 0);
  EXPECT_TRUE(left_->is_quiet());
  EXPECT_EQ(fake_verbs::waiting_for_receivers(), 1u);
  ASSERT_EQ(right_->post_receive(2, 0, 8), 0);
  EXPECT_EQ(left_->completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(right_->completion().wr_id, 2u);
  ASSERT_EQ(left_->send(3, 0, 8), 0);
  fake_verbs::expire_retries();
  EXPECT_EQ(left_->completion().status, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(fake_verbs::state_of(left_->pair->qp_num), IBV_QPS_ERR);
}

TEST_F(FakeVerbsTest, ThePlacesOfASendQueueComeBackWithCompletions) {
  connect();
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(right_->post_receive(i, 0, 8), 0);
    ASSERT_EQ(left_->send(i, 0, 8, i == 2 ? IBV_SEND_SIGNALED : 0), 0);
  }
  EXPECT_EQ(left_->send(9, 0, 8), ENOMEM);
  EXPECT_EQ(left_->completion().wr_id, 2u);
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(right_->post_receive(i, 0, 8), 0);
    EXPECT_EQ(left_->send(i, 0, 8, 0), 0);
  }
  EXPECT_EQ(left_->send(9, 0, 8), ENOMEM);
}

TEST_F(FakeVerbsTest, MessagesThatAreTooLongStopBothEnds) {
  connect();
  ASSERT_EQ(right_->post_receive(1, 0, 8), 0);
  ASSERT_EQ(right_->post_receive(2, 0, 8), 0);
  ASSERT_EQ(left_->send(3, 0, 9), 0);
  ASSERT_EQ(left_->send(4, 0, 8, 0), 0);
  ibv_wc all[3];
  ASSERT_EQ(ibv_poll_cq(left_->queue, 3, all), 2);
  EXPECT_EQ(all[0].status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(all[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(all[1].wr_id, 4u);
  ASSERT_EQ(ibv_poll_cq(right_->queue, 3, all), 2);
  EXPECT_EQ(all[0].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(all[1].status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(FakeVerbsTest, RemoteMemoryIsReadAndWritten) {
  connect();
  ASSERT_EQ(
      left_->access(IBV_WR_RDMA_WRITE, 1, 0, 1000, right_->address(500), right_->region->rkey), 0);
  EXPECT_EQ(left_->completion().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(same(0, 500, 1000));
  right_->fill(77);
  ASSERT_EQ(
      left_->access(IBV_WR_RDMA_READ, 2, 3000, 100, right_->address(20), right_->region->rkey), 0);
  EXPECT_EQ(left_->completion().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(same(3000, 20, 100));
  EXPECT_TRUE(right_->is_quiet());
}

TEST_F(FakeVerbsTest, RemoteMemoryIsGuarded) {
  const auto expect_refused = [&](uint64_t address, uint32_t key, size_t length) {
    ASSERT_EQ(left_->access(IBV_WR_RDMA_WRITE, 1, 0, length, address, key), 0);
    EXPECT_EQ(left_->completion().status, IBV_WC_REM_ACCESS_ERR);
    ibv_async_event event;
    ASSERT_EQ(ibv_get_async_event(right_->context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
    EXPECT_EQ(event.element.qp, right_->pair);
    ibv_ack_async_event(&event);
  };
  connect();
  expect_refused(right_->address(0), right_->region->rkey + 1, 8);
  connect();
  expect_refused(right_->address(16380), right_->region->rkey, 8);
  connect();
  expect_refused(right_->address(0) - 1, right_->region->rkey, 8);
  connect();
  expect_refused(UINT64_MAX - 4, right_->region->rkey, 8);
}

TEST_F(FakeVerbsTest, LocalMemoryIsGuarded) {
  connect();
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  ibv_sge piece = left_->piece(16380, 8);
  ASSERT_EQ(left_->post(request, {piece}), 0);
  EXPECT_EQ(left_->completion().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(fake_verbs::state_of(left_->pair->qp_num), IBV_QPS_ERR);
}

TEST_F(FakeVerbsTest, WindowsShowAPart) {
  connect();
  ibv_mw* const window = ibv_alloc_mw(right_->domain, IBV_MW_TYPE_2);
  ASSERT_NE(window, nullptr);
  const auto bind = [&](uint32_t key, unsigned access) {
    ibv_send_wr request{};
    request.opcode = IBV_WR_BIND_MW;
    request.send_flags = IBV_SEND_SIGNALED;
    request.bind_mw.mw = window;
    request.bind_mw.rkey = key;
    request.bind_mw.bind_info = {right_->region, right_->address(100), 50, access};
    EXPECT_EQ(right_->post(request, {}), 0);
    return right_->completion().status;
  };
  const uint32_t key = ibv_inc_rkey(window->rkey);
  ASSERT_EQ(bind(key, IBV_ACCESS_REMOTE_WRITE), IBV_WC_SUCCESS);
  ASSERT_EQ(left_->access(IBV_WR_RDMA_WRITE, 1, 0, 50, right_->address(100), key), 0);
  EXPECT_EQ(left_->completion().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(same(0, 100, 50));

  violations_expected_ = true;
  EXPECT_EQ(ibv_dereg_mr(right_->region), EBUSY);

  ibv_send_wr invalidate{};
  invalidate.opcode = IBV_WR_LOCAL_INV;
  invalidate.send_flags = IBV_SEND_SIGNALED;
  invalidate.invalidate_rkey = key;
  ASSERT_EQ(right_->post(invalidate, {}), 0);
  EXPECT_EQ(right_->completion().status, IBV_WC_SUCCESS);
  ASSERT_EQ(left_->access(IBV_WR_RDMA_WRITE, 1, 0, 50, right_->address(100), key), 0);
  EXPECT_EQ(left_->completion().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
}

TEST_F(FakeVerbsTest, WindowsAreGuarded) {
  for (const bool reads : {false, true}) {
    connect();
    ibv_mw* const window = ibv_alloc_mw(right_->domain, IBV_MW_TYPE_2);
    const uint32_t key = ibv_inc_rkey(window->rkey);
    ibv_send_wr request{};
    request.opcode = IBV_WR_BIND_MW;
    request.bind_mw.mw = window;
    request.bind_mw.rkey = key;
    request.bind_mw.bind_info = {right_->region, right_->address(100), 50, IBV_ACCESS_REMOTE_WRITE};
    ASSERT_EQ(right_->post(request, {}), 0);
    // An access to one more byte, or in the other direction, is refused.
    ASSERT_EQ(left_->access(reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 1, 0, reads ? 50 : 51,
                            right_->address(100), key),
              0);
    EXPECT_EQ(left_->completion().status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dealloc_mw(window), 0);
  }
}

TEST_F(FakeVerbsTest, DatagramsArriveOrAreLost) {
  left_ = std::make_unique<Side>();
  right_ = std::make_unique<Side>();
  for (Side* const side : {left_.get(), right_.get()}) {
    side->make_pair(IBV_QPT_UD);
    side->start_datagrams();
  }
  left_->fill(1);
  ibv_ah_attr way = right_->way();
  ibv_ah* const handle = ibv_create_ah(left_->domain, &way);
  const auto send = [&](uint32_t key, size_t bytes) {
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.ud = {handle, right_->pair->qp_num, key};
    EXPECT_EQ(left_->post(request, {left_->piece(0, bytes)}), 0);
    return left_->completion().status;
  };
  EXPECT_EQ(send(7, 10), IBV_WC_SUCCESS);  // no receive posted
  ASSERT_EQ(right_->post_receive(1, 0, 200), 0);
  EXPECT_EQ(send(8, 10), IBV_WC_SUCCESS);  // a wrong key
  fake_verbs::lose_datagrams(
      [](const fake_verbs::Datagram& datagram) { return datagram.bytes == 11; });
  EXPECT_EQ(send(7, 11), IBV_WC_SUCCESS);
  EXPECT_TRUE(right_->is_quiet());
  EXPECT_EQ(send(7, 12), IBV_WC_SUCCESS);
  const ibv_wc received = right_->completion();
  EXPECT_EQ(received.byte_len, 52u);
  EXPECT_EQ(received.src_qp, left_->pair->qp_num);
  EXPECT_EQ(received.wc_flags & IBV_WC_GRH, static_cast<unsigned>(IBV_WC_GRH));
  EXPECT_TRUE(same(0, 40, 12));
  EXPECT_EQ(right_->memory[20], 0x45);
  EXPECT_EQ(right_->memory[32], 127);
  EXPECT_EQ(send(7, 4097), IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(fake_verbs::state_of(left_->pair->qp_num), IBV_QPS_SQE);
  ibv_destroy_ah(handle);
}

TEST_F(FakeVerbsTest, EventsComeOncePerRequest) {
  connect();
  ASSERT_EQ(right_->post_receive(1, 0, 8), 0);
  ASSERT_EQ(right_->post_receive(2, 0, 8), 0);
  ASSERT_EQ(left_->send(1, 0, 8), 0);
  pollfd wait{right_->channel->fd, POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(right_->queue, 0), 0);
  EXPECT_EQ(poll(&wait, 1, 0), 0);  // not for earlier completions
  ASSERT_EQ(left_->send(2, 0, 8), 0);
  EXPECT_EQ(poll(&wait, 1, 0), 1);
  ibv_cq* queue = nullptr;
  void* user = nullptr;
  ASSERT_EQ(ibv_get_cq_event(right_->channel, &queue, &user), 0);
  EXPECT_EQ(queue, right_->queue);
  EXPECT_EQ(ibv_get_cq_event(right_->channel, &queue, &user), -1);
  EXPECT_EQ(errno, EAGAIN);
  ibv_ack_cq_events(right_->queue, 1);
}

TEST_F(FakeVerbsTest, AFullCompletionQueueIsLost) {
  left_ = std::make_unique<Side>(2);
  right_ = std::make_unique<Side>();
  left_->make_pair(IBV_QPT_RC);
  right_->make_pair(IBV_QPT_RC);
  left_->connect(*right_);
  right_->connect(*left_);
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(right_->post_receive(i, 0, 8), 0);
    ASSERT_EQ(left_->send(i, 0, 8), 0);
  }
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(left_->context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, left_->queue);
  ibv_ack_async_event(&event);
  EXPECT_EQ(fake_verbs::violations().size(), 1u);
  violations_expected_ = true;
}

TEST_F(FakeVerbsTest, AQueuePairWithoutItsOtherEndFails) {
  connect();
  ibv_destroy_qp(std::exchange(right_->pair, nullptr));
  ASSERT_EQ(left_->send(1, 0, 8), 0);
  EXPECT_EQ(left_->completion().status, IBV_WC_RETRY_EXC_ERR);

  left_ = std::make_unique<Side>();
  right_ = std::make_unique<Side>();
  left_->make_pair(IBV_QPT_RC);
  right_->make_pair(IBV_QPT_RC);
  left_->connect(*right_);
  right_->connect(*left_, 99);  // another number of the first packet
  ASSERT_EQ(left_->send(1, 0, 8), 0);
  EXPECT_EQ(left_->completion().status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(FakeVerbsTest, PortsGoDownAndUp) {
  connect();
  fake_verbs::set_port(0, false);
  ASSERT_EQ(right_->post_receive(1, 0, 8), 0);
  ASSERT_EQ(left_->send(1, 0, 8), 0);
  EXPECT_TRUE(left_->is_quiet());
  fake_verbs::set_port(0, true);
  EXPECT_EQ(left_->completion().status, IBV_WC_SUCCESS);
  ibv_async_event event;
  for (const ibv_event_type type : {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE}) {
    ASSERT_EQ(ibv_get_async_event(left_->context, &event), 0);
    EXPECT_EQ(event.event_type, type);
    ibv_ack_async_event(&event);
  }
  EXPECT_EQ(ibv_get_async_event(left_->context, &event), -1);
}

TEST_F(FakeVerbsTest, FaultsOnDemand) {
  fake_verbs::fail_call("ibv_create_cq", ENOMEM, 2);
  left_ = std::make_unique<Side>();
  ASSERT_NE(left_->queue, nullptr);
  EXPECT_EQ(ibv_create_cq(left_->context, 1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(fake_verbs::calls("ibv_create_cq"), 2u);
  connect();
  fake_verbs::fail_request(IBV_WC_REM_OP_ERR,
                           [](const fake_verbs::Request& request) { return request.bytes == 9; });
  for (const uint32_t bytes : {8u, 9u, 10u}) {
    ASSERT_EQ(right_->post_receive(1, 0, 64), 0);
    ASSERT_EQ(left_->send(bytes, 0, bytes), 0);
    EXPECT_EQ(left_->completion().status, bytes == 8   ? IBV_WC_SUCCESS
                                          : bytes == 9 ? IBV_WC_REM_OP_ERR
                                                       : IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_F(FakeVerbsTest, WorkCanBeHeld) {
  connect();
  fake_verbs::hold();
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(right_->post_receive(i, 0, 8), 0);
    ASSERT_EQ(left_->send(i, 0, 8), 0);
  }
  EXPECT_TRUE(left_->is_quiet());
  EXPECT_EQ(fake_verbs::let_pass(2), 2u);
  ibv_wc all[4];
  EXPECT_EQ(ibv_poll_cq(left_->queue, 4, all), 2);
  fake_verbs::release();
  EXPECT_EQ(left_->completion().wr_id, 2u);
}

TEST_F(FakeVerbsTest, WrongStepsAreRefused) {
  left_ = std::make_unique<Side>();
  left_->make_pair(IBV_QPT_RC);
  EXPECT_EQ(left_->send(1, 0, 8), EINVAL);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(left_->pair, &attributes, IBV_QP_STATE), EINVAL);
  attributes.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(ibv_modify_qp(left_->pair, &attributes, IBV_QP_STATE | IBV_QP_AV), EINVAL);
  violations_expected_ = true;
  EXPECT_EQ(ibv_dealloc_pd(left_->domain), EBUSY);
}

}  // namespace
}  // namespace lintel
