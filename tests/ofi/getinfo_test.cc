// fi_getinfo: man fi_getinfo, and what programs rely on.
#include <portals4.h>

#include "ofi/pair.h"

namespace lintel::test::ofi {
namespace {

TEST(GetInfoTest, WithoutHintsEverythingIsOffered) {
  run_alone([](Rank&) {
    const Info info = get_info(nullptr);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->next, nullptr);
    EXPECT_STREQ(info->fabric_attr->prov_name, "lintel");
    EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
    const uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_SOURCE |
                          FI_DIRECTED_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SEND | FI_RECV |
                          FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    EXPECT_EQ(info->caps & caps, caps);
    EXPECT_EQ(info->mode, 0);
    EXPECT_EQ(info->domain_attr->mr_mode, 0);
    EXPECT_GE(info->domain_attr->cq_data_size, 4u);
    EXPECT_EQ(info->tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
    // It opens nothing.
    ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
    EXPECT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr,
                        nullptr, &interface),
              PTL_NO_INIT);
  });
}

TEST(GetInfoTest, CapabilitiesAreThoseAskedForAndFreeOnes) {
  run_alone([](Rank&) {
    const Info hints = make_hints();
    hints->caps = FI_TAGGED;
    Info info = get_info(hints.get());
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->caps & (FI_TAGGED | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM),
              FI_TAGGED | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM);
    EXPECT_EQ(info->caps & (FI_MSG | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE), 0);
    hints->caps = FI_RMA | FI_WRITE;
    info = get_info(hints.get());
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->caps & (FI_READ | FI_WRITE), FI_WRITE);
    for (const uint64_t missing : {FI_VARIABLE_MSG, FI_COLLECTIVE}) {
      hints->caps = FI_MSG | missing;
      EXPECT_EQ(get_info(hints.get()), nullptr) << missing;
    }
  });
}

TEST(GetInfoTest, WhatOpenMpiAsksFor) {
  run_alone([](Rank&) {
    const Info hints = make_hints();
    hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
    hints->rx_attr->msg_order = hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->op_flags = hints->tx_attr->op_flags = FI_COMPLETION;
    hints->domain_attr->cq_data_size = 4;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    for (const fi_av_type type : {FI_AV_MAP, FI_AV_TABLE}) {
      hints->domain_attr->av_type = type;
      const Info info = get_info(hints.get(), FI_VERSION(1, 5));
      ASSERT_NE(info, nullptr);
      EXPECT_EQ(info->mode, FI_CONTEXT2);
      EXPECT_EQ(info->domain_attr->av_type, type);
      EXPECT_EQ(info->domain_attr->mr_mode, 0);
      EXPECT_EQ(info->tx_attr->op_flags, FI_COMPLETION);
    }
  });
}

TEST(GetInfoTest, ThreadingAndProgressAreEchoed) {
  run_alone([](Rank&) {
    const Info hints = make_hints();
    for (const fi_threading threading : {FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN,
                                         FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT}) {
      for (const fi_progress progress : {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL}) {
        hints->domain_attr->threading = threading;
        hints->domain_attr->control_progress = progress;
        hints->domain_attr->data_progress = progress;
        const Info info = get_info(hints.get());
        ASSERT_NE(info, nullptr);
        EXPECT_EQ(info->domain_attr->threading, threading);
        EXPECT_EQ(info->domain_attr->control_progress, progress);
        EXPECT_EQ(info->domain_attr->data_progress, progress);
      }
    }
  });
}

TEST(GetInfoTest, ModesOfRegistration) {
  run_alone([](Rank&) {
    const Info hints = make_hints();
    const auto granted = [&](int offered, uint32_t version) {
      hints->domain_attr->mr_mode = offered;
      const Info info = get_info(hints.get(), version);
      return info != nullptr ? info->domain_attr->mr_mode : -1;
    };
    EXPECT_EQ(granted(0, api), 0);
    EXPECT_EQ(granted(FI_MR_ALLOCATED | FI_MR_ENDPOINT | FI_MR_LOCAL, api), 0);
    EXPECT_EQ(granted(FI_MR_VIRT_ADDR, api), 0);
    EXPECT_EQ(granted(FI_MR_PROV_KEY | FI_MR_LOCAL, api), FI_MR_PROV_KEY);
    EXPECT_EQ(granted(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED, api),
              FI_MR_PROV_KEY | FI_MR_VIRT_ADDR);
    EXPECT_EQ(granted(FI_MR_BASIC, FI_VERSION(1, 4)), FI_MR_BASIC);
    EXPECT_EQ(granted(FI_MR_UNSPEC, FI_VERSION(1, 4)), FI_MR_SCALABLE);
  });
}

TEST(GetInfoTest, WhatCannotBeMetIsRefused) {
  run_alone([](Rank&) {
    const auto refused = [](const std::function<void(fi_info&)>& change) {
      const Info hints = make_hints();
      change(*hints);
      return get_info(hints.get()) == nullptr;
    };
    EXPECT_FALSE(refused([](fi_info&) {}));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.ep_attr->type = FI_EP_MSG; }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.domain_attr->max_ep_srx_ctx = 257; }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.ep_attr->max_msg_size = SIZE_MAX; }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.ep_attr->max_order_waw_size = 1 << 20; }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.tx_attr->inject_size = 513; }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.tx_attr->iov_limit = 5; }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.tx_attr->msg_order = FI_ORDER_SAW; }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.rx_attr->comp_order = FI_ORDER_DATA; }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.domain_attr->cq_data_size = 8; }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.domain_attr->mr_key_size = 9; }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.domain_attr->name = strdup("other"); }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.fabric_attr->name = strdup("other"); }));
    EXPECT_TRUE(refused([](fi_info& hints) { hints.addr_format = FI_SOCKADDR_IN; }));
    EXPECT_FALSE(refused([](fi_info& hints) { hints.addr_format = FI_ADDR_STR; }));
    EXPECT_FALSE(refused([](fi_info& hints) { hints.rx_attr->size = 100000; }));
  });
}

TEST(GetInfoTest, ANodeIsTheTextOfAName) {
  run_alone([](Rank&) {
    fi_info* info = nullptr;
    const Info hints = make_hints();
    ASSERT_EQ(fi_getinfo(api, "fi_lintel://5:6:7", nullptr, 0, hints.get(), &info), 0);
    EXPECT_EQ(info->dest_addrlen, 16u);
    ASSERT_NE(info->dest_addr, nullptr);
    fi_freeinfo(info);
    EXPECT_EQ(fi_getinfo(api, "localhost", nullptr, 0, hints.get(), &info), -FI_ENODATA);
    EXPECT_EQ(fi_getinfo(api, "fi_lintel://5:70000:7", nullptr, 0, hints.get(), &info),
              -FI_ENODATA);
  });
}

// With FI_SOURCE, node and service are those of the own endpoint.
TEST(GetInfoTest, TheDestinationOfTheHintsAndTheSource) {
  run_alone([](Rank&) {
    const Info hints = make_hints();
    hints->dest_addr = strdup("fi_lintel://5:6:7");
    hints->dest_addrlen = strlen("fi_lintel://5:6:7") + 1;
    hints->addr_format = FI_ADDR_STR;
    for (const auto flags : {0ULL, FI_SOURCE}) {
      fi_info* info = nullptr;
      const char* const service = flags != 0 ? "1234" : nullptr;
      ASSERT_EQ(fi_getinfo(api, nullptr, service, flags, hints.get(), &info), 0);
      EXPECT_EQ(info->src_addr, nullptr);
      ASSERT_NE(info->dest_addr, nullptr);
      EXPECT_STREQ(static_cast<const char*>(info->dest_addr), "fi_lintel://5:6:7");
      fi_freeinfo(info);
    }
    fi_info* info = nullptr;
    EXPECT_EQ(fi_getinfo(api, "fi_lintel://5:6:7", nullptr, FI_SOURCE, hints.get(), &info),
              -FI_ENODATA);
    // Nobody chooses the address of an endpoint.
    hints->src_addr = strdup("fi_lintel://5:6:8");
    hints->src_addrlen = hints->dest_addrlen;
    EXPECT_EQ(get_info(hints.get()), nullptr);
  });
}

// All that fi_getinfo returns can be requested.
TEST(GetInfoTest, WhatIsReturnedCanBeHints) {
  run_alone([](Rank&) {
    for (const unsigned minor : {4, 5, 17}) {
      const uint32_t version = FI_VERSION(1, minor);
      const Info first = get_info(nullptr, version);
      ASSERT_NE(first, nullptr);
      const Info second = get_info(first.get(), version);
      ASSERT_NE(second, nullptr);
      EXPECT_EQ(second->caps, first->caps);
      EXPECT_EQ(second->domain_attr->mr_mode, first->domain_attr->mr_mode);
      EXPECT_EQ(second->tx_attr->size, first->tx_attr->size);
      EXPECT_EQ(second->rx_attr->size, first->rx_attr->size);
      EXPECT_EQ(second->ep_attr->mem_tag_format, first->ep_attr->mem_tag_format);
    }
  });
}

// An open fabric and domain are used again.
TEST(GetInfoTest, HintsNameOpenObjects) {
  run_alone([](Rank&) {
    const Side side({});
    const Info hints = make_hints();
    hints->fabric_attr->fabric = side.fabric();
    hints->domain_attr->domain = side.domain();
    const Info info = get_info(hints.get());
    hints->fabric_attr->fabric = nullptr;
    hints->domain_attr->domain = nullptr;
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->fabric_attr->fabric, side.fabric());
    EXPECT_EQ(info->domain_attr->domain, side.domain());
  });
}

}  // namespace
}  // namespace lintel::test::ofi
