// Execution of a phase. Set-up path.
#include "fuzz/endpoint.h"

#include <thread>

#include "fuzz/completion.h"
#include "fuzz/portal_check.h"
#include "fuzz/thread_runner.h"

namespace lintel::fuzz {

Endpoint::Endpoint(Shared& shared, const Shape& shape, int index, ptl_interface_t interface,
                   bool lossy)
    : shared_(shared),
      shape_(shape),
      lossy_(lossy),
      index_(index),
      problems_(index),
      matching_(true, (shape.seed & 1) != 0, interface, index, problems_),
      nonmatching_(false, (shape.seed & 1) != 0, interface, index, problems_),
      memory_(shape.threads) {
  problems_.expect_ok(PtlGetUid(matching_.handle(), &uid_), "PtlGetUid");
  problems_.expect_ok(
      PtlGetPhysId(matching_.handle(), &shared.processes[static_cast<std::size_t>(index)]),
      "PtlGetPhysId");
}

void Endpoint::connect() {
  shared_.barrier(shape_.endpoints);
  matching_.connect(shared_.processes.data(), shape_.endpoints);
  nonmatching_.connect(shared_.processes.data(), shape_.endpoints);
  shared_.barrier(shape_.endpoints);
}

const std::vector<std::string>& Endpoint::check_room() {
  matching_.check_room();
  nonmatching_.check_room();
  return problems_.texts();
}

const std::vector<std::string>& Endpoint::run(uint64_t number) {
  const Program program(shape_, number);
  const Phase phase{program, index_,  lossy_,   uid_, program.matching ? matching_ : nonmatching_,
                    memory_, shared_, problems_};
  memory_.prepare(program, index_);
  for (const Message& m : program.messages)
    if (m.endpoint == index_) shared_.messages[m.id] = MessageSeen{};
  open_portals(phase);
  EventTaker events(phase);
  ListCalls lists(phase, events);
  run_threads(phase, events, lists);
  if (!problems_.none()) return problems_.texts();
  shared_.barrier(shape_.endpoints);
  empty_portals(phase, events, lists);
  for (int i = 0; i < portals; ++i) PortalCheck(phase, lists, i).run();
  shared_.messages_done.fetch_add(program.messages.size() /
                                  static_cast<std::size_t>(shape_.endpoints));
  if (problems_.none()) shared_.barrier(shape_.endpoints);
  return problems_.texts();
}

void Endpoint::open_portals(const Phase& phase) {
  for (int i = 0; i < portals; ++i) {
    const Portal& portal = phase.program.portal(index_, i);
    Queue& queue = phase.objects.portal_queue(i);
    queue.log.clear();
    ptl_pt_index_t index = 0;
    problems_.expect_ok(PtlPTAlloc(phase.objects.handle(), portal.options,
                                   portal.has_queue ? queue.handle : PTL_EQ_NONE,
                                   first_portal + static_cast<ptl_pt_index_t>(i), &index),
                        "PtlPTAlloc");
    for (int counter = 0; counter < portal_counters; ++counter)
      problems_.expect_ok(PtlCTSet(phase.objects.portal_count(i, counter), {0, 0}), "PtlCTSet");
    if (portal.tight) phase.objects.fill_queue(i, portal);
  }
}

// Returns when all operations that the threads have started have ended.
void Endpoint::run_threads(const Phase& phase, EventTaker& events, ListCalls& lists) {
  for (int i = 0; i < shape_.threads; ++i) {
    phase.objects.thread_queue(i).log.clear();
    problems_.expect_ok(PtlCTSet(phase.objects.trigger_count(i), {0, 0}), "PtlCTSet");
  }
  const Descriptors descriptors(phase);
  MessageCalls messages(phase, descriptors);
  shared_.barrier(shape_.endpoints);
  std::vector<std::thread> threads;
  for (int i = 0; i < shape_.threads; ++i)
    threads.emplace_back([&, i] { ThreadRunner(phase, i, events, messages, lists).run(); });
  for (std::thread& thread : threads) thread.join();
  lists.forget_triggered();
  Completion completion(phase, descriptors, events);
  completion.finish_operations();
  if (problems_.none()) completion.fence();
}

// No more messages arrive. Removes what is left and frees the portals. A long get may have ended at
// its initiator while its target still awaits acknowledgements of the data.
void Endpoint::empty_portals(const Phase& phase, EventTaker& events, ListCalls& lists) {
  const int last = shape_.threads;
  for (int i = 0; i < portals; ++i) {
    problems_.expect_ok(
        PtlPTDisable(phase.objects.handle(), first_portal + static_cast<ptl_pt_index_t>(i)),
        "PtlPTDisable");
    events.take_of_portal(i);
    Entry search_all = phase.program.entries[phase.program.last_search(index_, i)];
    search_all.thread = last;
    lists.search(search_all);
  }
  for (const Entry& e : phase.program.entries)
    if (e.endpoint == index_ && !e.is_search) lists.unlink(last, e);
  for (int i = 0; i < portals; ++i) {
    events.take_of_portal(i);
    problems_.expect_ok(
        PtlPTFree(phase.objects.handle(), first_portal + static_cast<ptl_pt_index_t>(i)),
        "PtlPTFree");
    if (phase.program.portal(index_, i).tight) phase.objects.empty_queue(i);
  }
}

}  // namespace lintel::fuzz
