// perf_instructions_provider: tagged messages of 8 bytes between two processes over the provider
// for libfabric, in windows, for perf/instructions. One side is counted: fi_trecv and fi_cq_read
// (row fi_receive), or fi_tinjectdata (fi_send). The other waits meanwhile, so no poll
// is without work.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "options.h"

namespace {

constexpr uint64_t window = 50;
constexpr size_t payload_bytes = 8;
constexpr size_t name_bytes = 16;

void must(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "perf_instructions_provider: %s failed\n", what);
  std::_Exit(EXIT_FAILURE);
}

// One of the two processes, which are connected by pipes.
struct Side {
  bool receives;
  int from_other;
  int to_other;
  fid_ep* endpoint = nullptr;
  fid_cq* queue = nullptr;
  fi_addr_t peer = FI_ADDR_NOTAVAIL;

  void tell(const void* data, size_t bytes) const {
    must(write(to_other, data, bytes) == static_cast<ssize_t>(bytes), "write");
  }
  void hear(void* data, size_t bytes) const {
    must(read(from_other, data, bytes) == static_cast<ssize_t>(bytes), "read");
  }
};

void open_endpoint(Side& side) {
  fi_info* const hints = fi_allocinfo();
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->tx_attr->op_flags = hints->rx_attr->op_flags = FI_COMPLETION;
  hints->fabric_attr->prov_name = strdup("lintel");
  fi_info* info = nullptr;
  must(fi_getinfo(FI_VERSION(1, 5), nullptr, nullptr, 0, hints, &info) == 0, "fi_getinfo");
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* addresses = nullptr;
  must(fi_fabric(info->fabric_attr, &fabric, nullptr) == 0, "fi_fabric");
  must(fi_domain(fabric, info, &domain, nullptr) == 0, "fi_domain");
  must(fi_endpoint(domain, info, &side.endpoint, nullptr) == 0, "fi_endpoint");
  fi_cq_attr queue{};
  queue.format = FI_CQ_FORMAT_TAGGED;
  must(fi_cq_open(domain, &queue, &side.queue, nullptr) == 0, "fi_cq_open");
  fi_av_attr vector{};
  must(fi_av_open(domain, &vector, &addresses, nullptr) == 0, "fi_av_open");
  must(fi_ep_bind(side.endpoint, &addresses->fid, 0) == 0, "fi_ep_bind");
  must(fi_ep_bind(side.endpoint, &side.queue->fid, FI_TRANSMIT | FI_RECV) == 0, "fi_ep_bind");
  must(fi_enable(side.endpoint) == 0, "fi_enable");
  std::array<std::byte, name_bytes> name;
  size_t size = name.size();
  must(fi_getname(&side.endpoint->fid, name.data(), &size) == 0, "fi_getname");
  side.tell(name.data(), name.size());
  side.hear(name.data(), name.size());
  must(fi_av_insert(addresses, name.data(), 1, &side.peer, 0, nullptr) == 1, "fi_av_insert");
}

enum class Step { post, send, take };

void do_step(const Side& side, Step step) {
  static std::array<fi_context2, window> contexts;
  static char memory[window][payload_bytes];
  std::array<fi_cq_tagged_entry, 2 * window> entries;
  for (uint64_t i = 0; i < window && step != Step::take; ++i)
    must((step == Step::post
              ? fi_trecv(side.endpoint, memory[i], payload_bytes, nullptr, FI_ADDR_UNSPEC, i, 0,
                         &contexts[i])
              : fi_tinjectdata(side.endpoint, memory[i], payload_bytes, 1, side.peer, i)) == 0,
         "a message");
  for (ssize_t left = window; left > 0 && step == Step::take;)
    if (const ssize_t read = fi_cq_read(side.queue, entries.data(), entries.size()); read > 0)
      left -= read;
}

}  // namespace

// The only part that is counted.
extern "C" [[gnu::noinline]] void perf_instructions_step(const Side& side, Step step) {
  do_step(side, step);
}

namespace {

void exchange(uint64_t messages, bool counts_receiver) {
  int there[2];
  int back[2];
  must(pipe(there) == 0 && pipe(back) == 0, "pipe");
  const bool receives = fork() == 0;
  Side side = {receives, receives ? there[0] : back[0], receives ? back[1] : there[1]};
  open_endpoint(side);
  const auto go = counts_receiver == receives ? perf_instructions_step : do_step;
  char word = 0;
  for (uint64_t done = 0; done < messages; done += window) {
    if (receives) {
      go(side, Step::post);
      side.tell(&word, 1);
      side.hear(&word, 1);
      go(side, Step::take);
    } else {
      side.hear(&word, 1);
      go(side, Step::send);
      side.tell(&word, 1);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr lintel::instructions::Row rows[] = {
      {"fi_receive", [](uint64_t messages) { exchange(messages, true); }},
      {"fi_send", [](uint64_t messages) { exchange(messages, false); }}};
  return lintel::instructions::run(argc, argv, rows);
}
