// Setting up an initiator and a target for a test, and operations between them. Set-up path.
#include "support/pair.h"

#include <algorithm>
#include <optional>

#include "support/device_view.h"
#include "support/ethernet.h"
#include "support/rdma.h"

namespace lintel::test {

namespace {

constexpr Path all_paths[] = {
    Path::self,      Path::shm,        Path::shm_copy,       Path::udp,
    Path::udp_lossy, Path::dpdk_memif, Path::dpdk_af_packet, Path::dpdk_lossy,
    Path::verbs,     Path::verbs_ud};

bool is_lossy(Path path) { return path == Path::udp_lossy || path == Path::dpdk_lossy; }

std::optional<Ethernet> ethernet_of(Path path) {
  if (path == Path::dpdk_memif || path == Path::dpdk_lossy) return Ethernet::memif;
  if (path == Path::dpdk_af_packet) return Ethernet::af_packet;
  return std::nullopt;
}

std::optional<Rdma> rdma_of(Path path) {
  if (path == Path::verbs) return Rdma::connected;
  if (path == Path::verbs_ud) return Rdma::datagrams;
  return std::nullopt;
}

using Environment = std::vector<std::pair<std::string, std::string>>;

constexpr const char* losses = "drop=0.05,dup=0.05,reorder=0.05,seed=11";

Environment environment_of(Path path) {
  switch (path) {
    case Path::self:
    case Path::shm:
      return {};
    case Path::shm_copy:
      return {{"PTL_SHM_CMA", "0"}};
    case Path::udp:
      return {{"PTL_TRANSPORT", "udp"}, {"PTL_PEER_TIMEOUT_MS", "3000"}};
    case Path::udp_lossy:
      return {{"PTL_TRANSPORT", "udp"}, {"PTL_PEER_TIMEOUT_MS", "6000"}, {"PTL_FAULTS", losses}};
    case Path::dpdk_memif:
    case Path::dpdk_af_packet:
      return {{"PTL_PEER_TIMEOUT_MS", "6000"}};
    case Path::verbs:
    case Path::verbs_ud:
      return {{"PTL_PEER_TIMEOUT_MS", rdma_timeout_ms()}};
    case Path::dpdk_lossy:
      return {{"PTL_PEER_TIMEOUT_MS", "6000"}, {"PTL_FAULTS", losses}};
  }
  return {};
}

std::vector<PairKind> pairs_where(bool (*wanted)(const InterfaceKind&)) {
  std::vector<PairKind> pairs;
  for (const Path path : all_paths) {
    std::vector<InterfaceKind> kinds;
    for (const InterfaceKind& kind : all_interface_kinds)
      if (wanted(kind)) kinds.push_back(kind);
    // With DPDK most of the time of a test goes to the start, and emulated devices are slow. The
    // short form covers two kinds of interface that have no property in common.
    const bool one_is_enough = !long_tests();
    const bool first_only =
        is_lossy(path) || (one_is_enough && (path == Path::dpdk_memif || path == Path::verbs));
    const bool last_only =
        one_is_enough && (path == Path::dpdk_af_packet || path == Path::verbs_ud);
    if (first_only) kinds.resize(std::min<std::size_t>(kinds.size(), 1));
    if (last_only && kinds.size() > 1) kinds.erase(kinds.begin(), kinds.end() - 1);
    for (const InterfaceKind& kind : kinds) pairs.push_back({path, kind});
  }
  return pairs;
}

std::span<std::byte> memory_of(Pair& pair, Side side, std::size_t bytes) {
  return has_device_memory(side) && bytes != 0 ? allocate_view(bytes) : pair.memory(bytes);
}

// The last step of set-up on both sides, so the fence exists when the initiator first uses it.
void post_fence(Pair& pair, Place place) {
  if (pair.is_target()) {
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(pair.ni(), 0, PTL_EQ_NONE, fence_pt_index, &index), place);
    pair.interface().append(fence_pt_index,
                            {.options = PTL_ME_OP_PUT, .ignore_bits = ~ptl_match_bits_t{0}},
                            PTL_PRIORITY_LIST, nullptr, place);
  }
  pair.barrier(place);
}

}  // namespace

std::vector<PairKind> all_pairs() {
  return pairs_where([](const InterfaceKind&) { return true; });
}

std::vector<PairKind> matching_pairs() {
  return pairs_where([](const InterfaceKind& kind) { return kind.matching; });
}

std::vector<PairKind> nonmatching_pairs() {
  return pairs_where([](const InterfaceKind& kind) { return !kind.matching; });
}

std::vector<PairKind> one_pair_per_path() {
  return pairs_where([](const InterfaceKind& kind) { return kind.matching && !kind.logical; });
}

std::string pair_name(const testing::TestParamInfo<PairKind>& info) {
  static constexpr const char* paths[] = {"self",      "shm",        "shm_copy",       "udp",
                                          "udp_lossy", "dpdk_memif", "dpdk_af_packet", "dpdk_lossy",
                                          "verbs",     "verbs_ud"};
  return std::string(paths[static_cast<int>(info.param.path)])
      .append("_")
      .append(info.param.interface.name());
}

Pair::Pair(Rank& rank, const PairKind& kind, const ptl_ni_limits_t* desired)
    : rank_(rank), interface_(rank, kind.interface, Interface::Settings{.desired = desired}) {
  post_fence(*this, Place::current());
}

std::span<std::byte> Pair::memory(std::size_t bytes) { return memory_.emplace_back(bytes); }

void run_pair(const PairKind& kind, const PairOptions& options,
              const std::function<void(Pair&)>& body) {
  const std::optional<Ethernet> ethernet = ethernet_of(kind.path);
  if (ethernet) {
    if (const std::string why = why_no_ethernet(*ethernet); !why.empty()) GTEST_SKIP() << why;
    prepare_ethernet(*ethernet);
  }
  const std::optional<Rdma> rdma = rdma_of(kind.path);
  if (rdma)
    if (const std::string why = why_no_rdma(); !why.empty()) GTEST_SKIP() << why;
  RunOptions run = options.run;
  for (auto& variable : environment_of(kind.path)) run.environment.push_back(std::move(variable));
  // Thousands of round trips take a minute with emulated devices. They do so, too, where arrivals
  // wake no thread, if other programs use the processors.
  if (ethernet || (rdma && machine_slowdown() > 1))
    run.deadline = std::max(run.deadline, 3 * test_deadline);
  run_ranks(kind.path == Path::self ? 1 : 2, run, [&](Rank& rank) {
    if (ethernet) join_ethernet(rank.index(), *ethernet);
    if (rdma) join_rdma(rank.index(), *rdma);
    Pair pair(rank, kind, options.desired);
    body(pair);
    pair.barrier();
  });
}

void run_pair(const PairKind& kind, const std::function<void(Pair&)>& body) {
  run_pair(kind, PairOptions{}, body);
}

TargetSide::TargetSide(Pair& pair, const TargetSettings& settings, Place place) : pair_(pair) {
  if (pair.is_target()) {
    if (settings.with_event_queue) events = EventQueue(pair.ni(), settings.events, place);
    counter = Counter(pair.ni(), place);
    memory = memory_of(pair, Side::target, settings.bytes);
    must(PtlPTAlloc(pair.ni(), settings.pt_options, events.handle(), settings.pt_index, &pt_index),
         place);
    EXPECT_EQ(pt_index, settings.pt_index);
  }
  pair.barrier(place);
}

EntrySpec TargetSide::entry(unsigned options, const EntryChanges& changes) const {
  return {.start = changes.start.value_or(memory.data()),
          .length = changes.length.value_or(memory.size()),
          .options = options | PTL_ME_EVENT_LINK_DISABLE,
          .counter = changes.counter,
          .uid = changes.uid,
          .match_bits = changes.match_bits,
          .ignore_bits = changes.ignore_bits,
          .min_free = changes.min_free,
          .match_id = changes.match_id};
}

ptl_handle_any_t TargetSide::append(const EntrySpec& spec, ptl_list_t list, void* user_ptr,
                                    Place place) const {
  return pair_.interface().append(pt_index, spec, list, user_ptr, place);
}

LocalMemory::LocalMemory(Pair& pair, const InitiatorSettings& settings, Place place)
    : memory(memory_of(pair, Side::initiator, settings.bytes)),
      events(pair.ni(), settings.events, place),
      counter(pair.ni(), place),
      descriptor(pair.ni(), memory, settings.options, events.handle(), counter.handle(), place) {}

InitiatorSide::InitiatorSide(Pair& pair, const InitiatorSettings& settings, Place place)
    : pair_(pair) {
  if (pair.is_initiator()) {
    source = LocalMemory(pair, settings, place);
    result = LocalMemory(pair, settings, place);
    fence_counter_ = Counter(pair.ni(), place);
    fence_descriptor_ = Descriptor(pair.ni(), std::span<std::byte>{}, PTL_MD_EVENT_CT_ACK,
                                   PTL_EQ_NONE, fence_counter_.handle(), place);
  }
  pair.barrier(place);
}

void InitiatorSide::put(const Request& request, Place place) const {
  must(PtlPut(source.descriptor.handle(), request.local_offset, request.length, request.ack,
              pair_.target_id(), request.pt_index, request.match_bits, request.remote_offset,
              request.user_ptr, request.hdr_data),
       place);
}

void InitiatorSide::get(const Request& request, Place place) const {
  must(PtlGet(result.descriptor.handle(), request.local_offset, request.length, pair_.target_id(),
              request.pt_index, request.match_bits, request.remote_offset, request.user_ptr),
       place);
}

void InitiatorSide::atomic(const Request& request, ptl_op_t operation, ptl_datatype_t datatype,
                           Place place) const {
  must(PtlAtomic(source.descriptor.handle(), request.local_offset, request.length, request.ack,
                 pair_.target_id(), request.pt_index, request.match_bits, request.remote_offset,
                 request.user_ptr, request.hdr_data, operation, datatype),
       place);
}

void InitiatorSide::fetch_atomic(const Request& request, ptl_op_t operation,
                                 ptl_datatype_t datatype, Place place) const {
  must(PtlFetchAtomic(result.descriptor.handle(), 0, source.descriptor.handle(),
                      request.local_offset, request.length, pair_.target_id(), request.pt_index,
                      request.match_bits, request.remote_offset, request.user_ptr, request.hdr_data,
                      operation, datatype),
       place);
}

void InitiatorSide::swap(const Request& request, const void* operand, ptl_op_t operation,
                         ptl_datatype_t datatype, Place place) const {
  must(PtlSwap(result.descriptor.handle(), 0, source.descriptor.handle(), request.local_offset,
               request.length, pair_.target_id(), request.pt_index, request.match_bits,
               request.remote_offset, request.user_ptr, request.hdr_data, operand, operation,
               datatype),
       place);
}

SendAndAck InitiatorSide::expect_send_and_ack(ptl_ni_fail_t ack_result, Place place) const {
  const auto events = source.events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK}, place);
  if (events[0].ni_fail_type != PTL_NI_OK || events[1].ni_fail_type != ack_result) {
    ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line()))
        << "expected PTL_NI_OK and " << fail_name(ack_result) << ", got " << describe(events[0])
        << "\nand " << describe(events[1]);
  }
  return {events[0], events[1]};
}

SendAndAck InitiatorSide::put_and_wait(const Request& request, ptl_ni_fail_t ack_result,
                                       Place place) const {
  put(request, place);
  return expect_send_and_ack(ack_result, place);
}

ptl_event_t InitiatorSide::get_and_wait(const Request& request, ptl_ni_fail_t result_code,
                                        Place place) const {
  get(request, place);
  return result.events.expect(PTL_EVENT_REPLY, result_code, place);
}

void InitiatorSide::fence(Place place) {
  must(PtlPut(fence_descriptor_.handle(), 0, 0, PTL_ACK_REQ, pair_.target_id(), fence_pt_index, 0,
              0, nullptr, 0),
       place);
  fence_counter_.expect(++fences_, 0, place);
}

void run_sides(const PairKind& kind, const TargetSettings& target,
               const InitiatorSettings& initiator, const SidesBody& body) {
  run_pair(kind, [&](Pair& pair) {
    TargetSide target_side(pair, target);
    InitiatorSide initiator_side(pair, initiator);
    body(pair, target_side, initiator_side);
  });
}

void run_sides(const PairKind& kind, const SidesBody& body) { run_sides(kind, {}, {}, body); }

}  // namespace lintel::test
