// The stand-in for libibverbs itself: what it refuses, according to the specification of
// InfiniBand. Other tests rely on it.
#include "support/fake_verbs/fake_verbs.h"

#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace lintel {
namespace {

// A device with one completion queue for all completions.
class Side {
 public:
  Side() {
    int count = 0;
    ibv_device** const devices = ibv_get_device_list(&count);
    EXPECT_GE(count, 1);
    context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    domain = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
    queue = ibv_create_cq(context, 64, nullptr, channel, 0);
    memory.resize(16384);
    region = ibv_reg_mr(domain, memory.data(), memory.size(),
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_MW_BIND);
  }
  ~Side() {
    if (pair != nullptr) ibv_destroy_qp(pair);
    ibv_dereg_mr(region);
    ibv_destroy_cq(queue);
    ibv_destroy_comp_channel(channel);
    ibv_dealloc_pd(domain);
    ibv_close_device(context);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void make_pair() {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {4, 4, 2, 2, 64};
    pair = ibv_create_qp(domain, &wanted);
    ASSERT_NE(pair, nullptr);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(ibv_modify_qp(pair, &attributes,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
  }

  ibv_ah_attr way() const {
    ibv_ah_attr attributes{};
    attributes.is_global = 1;
    attributes.port_num = 1;
    EXPECT_EQ(ibv_query_gid(context, 1, 0, &attributes.grh.dgid), 0);
    return attributes;
  }

  void connect(const Side& other) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = other.pair->qp_num;
    attributes.rq_psn = 100;
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

  ibv_sge piece(size_t offset, size_t length) {
    return {reinterpret_cast<uint64_t>(memory.data() + offset), static_cast<uint32_t>(length),
            region->lkey};
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

  uint64_t address(size_t offset) { return reinterpret_cast<uint64_t>(memory.data() + offset); }

  ibv_context* context;
  ibv_pd* domain;
  ibv_comp_channel* channel;
  ibv_cq* queue;
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
  void connect() {
    left_ = std::make_unique<Side>();
    right_ = std::make_unique<Side>();
    left_->make_pair();
    right_->make_pair();
    left_->connect(*right_);
    right_->connect(*left_);
  }

  std::unique_ptr<Side> left_, right_;
  bool violations_expected_ = false;
};

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

TEST_F(FakeVerbsTest, WrongStepsAreRefused) {
  left_ = std::make_unique<Side>();
  left_->make_pair();
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
