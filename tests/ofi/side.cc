#include "ofi/side.h"

#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

namespace lintel::test::ofi {
void must(ssize_t code, Place place) {
  if (code == 0) return;
  Rank::current().fail(std::string(place.file_name()) + ":" + std::to_string(place.line()) + ": " +
                       fi_strerror(static_cast<int>(-code)) + " (" + std::to_string(code) + ")");
}

void use_provider() {
  setenv("FI_PROVIDER_PATH", LINTEL_OFI_PROVIDER_DIRECTORY, 1);
  setenv("FI_PROVIDER", "lintel", 1);
  fi_info* info = nullptr;
  if (fi_getinfo(api, nullptr, nullptr, 0, nullptr, &info) == 0) fi_freeinfo(info);
}

Info make_hints() {
  Info hints(fi_allocinfo());
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup("lintel");
  return hints;
}

Info get_info(const fi_info* hints, uint32_t version) {
  fi_info* info = nullptr;
  const int code = fi_getinfo(version, nullptr, nullptr, 0, hints, &info);
  return Info(code == 0 ? info : nullptr);
}

Accelerator& accelerator(const char* driver) {
  static Accelerator& only = Accelerator::load(driver);
  return only;
}

Side::Side(const Settings& settings) {
  if (settings.driver != nullptr) (void)accelerator(settings.driver);
  const Info hints = make_hints();
  hints->caps = settings.caps;
  if (!settings.contexts) hints->mode = 0;
  hints->domain_attr->threading = settings.threading;
  hints->domain_attr->data_progress = settings.progress;
  hints->domain_attr->mr_mode = settings.mr_mode;
  hints->domain_attr->av_type = settings.vector;
  hints->tx_attr->op_flags = settings.transmit_flags;
  info_ = get_info(hints.get());
  if (info_ == nullptr) Rank::current().fail("fi_getinfo returns nothing");
  fabric_ = open<fid_fabric>([&](auto** to) { return fi_fabric(info_->fabric_attr, to, nullptr); });
  domain_ = open<fid_domain>(
      [&](auto** to) { return fi_domain(fabric_.get(), info_.get(), to, nullptr); });
  fi_av_attr vector{};
  vector.type = settings.vector;
  addresses_ =
      open<fid_av>([&](auto** to) { return fi_av_open(domain_.get(), &vector, to, nullptr); });
  fi_cq_attr queue{};
  queue.format = settings.format;
  queue.wait_obj = settings.wait;
  sent_ = open<fid_cq>([&](auto** to) { return fi_cq_open(domain_.get(), &queue, to, nullptr); });
  received_ =
      open<fid_cq>([&](auto** to) { return fi_cq_open(domain_.get(), &queue, to, nullptr); });
  endpoint_ =
      open<fid_ep>([&](auto** to) { return fi_endpoint(domain_.get(), info_.get(), to, nullptr); });
  must(fi_ep_bind(endpoint_.get(), &addresses_->fid, 0));
  must(fi_ep_bind(endpoint_.get(), &sent_->fid, FI_TRANSMIT | settings.selective));
  must(fi_ep_bind(endpoint_.get(), &received_->fid, FI_RECV | settings.selective));
  if (settings.counters) {
    open_counter(send_counter_, FI_SEND, settings.counter_wait);
    open_counter(receive_counter_, FI_RECV, settings.counter_wait);
    open_counter(read_counter_, FI_READ, settings.counter_wait);
    open_counter(write_counter_, FI_WRITE, settings.counter_wait);
  }
  if (settings.remote_counters) {
    open_counter(remote_read_counter_, FI_REMOTE_READ, settings.counter_wait);
    open_counter(remote_write_counter_, FI_REMOTE_WRITE, settings.counter_wait);
  }
  must(fi_enable(endpoint_.get()));
}

void Side::open_counter(Owned<fid_cntr>& counter, uint64_t flag, fi_wait_obj wait) {
  fi_cntr_attr attr{};
  attr.wait_obj = wait;
  counter =
      open<fid_cntr>([&](auto** to) { return fi_cntr_open(domain_.get(), &attr, to, nullptr); });
  must(fi_ep_bind(endpoint_.get(), &counter->fid, flag));
}

std::vector<std::byte> Side::name() const {
  std::vector<std::byte> name(64);
  size_t size = name.size();
  must(fi_getname(&endpoint_->fid, name.data(), &size));
  name.resize(size);
  return name;
}

void Side::connect(const std::vector<std::byte>& name) {
  if (fi_av_insert(addresses_.get(), name.data(), 1, &peer_, 0, nullptr) != 1)
    Rank::current().fail("fi_av_insert");
}

fi_cq_tagged_entry Side::next(fid_cq* queue, fi_addr_t* source, Place place) const {
  fi_cq_tagged_entry entry{};
  ssize_t code = 0;
  await_progress(
      "a completion",
      [&] {
        code = source != nullptr ? fi_cq_readfrom(queue, &entry, 1, source)
                                 : fi_cq_read(queue, &entry, 1);
        return code != -FI_EAGAIN;
      },
      place);
  if (code == -FI_EAVAIL) {
    const fi_cq_err_entry error = next_error(queue, place);
    must(-error.err, place);
  }
  must(code - 1, place);
  return entry;
}

fi_cq_err_entry Side::next_error(fid_cq* queue, Place place) const {
  fi_cq_tagged_entry entry{};
  ssize_t code = 0;
  await_progress(
      "an error",
      [&] {
        code = fi_cq_read(queue, &entry, 1);
        return code != -FI_EAGAIN;
      },
      place);
  must(code + FI_EAVAIL, place);
  fi_cq_err_entry error{};
  must(fi_cq_readerr(queue, &error, 0) - 1, place);
  return error;
}

void Side::expect_nothing(fid_cq* queue, Place place) const {
  fi_cq_tagged_entry entry{};
  must(fi_cq_read(queue, &entry, 1) + FI_EAGAIN, place);
}

}  // namespace lintel::test::ofi
