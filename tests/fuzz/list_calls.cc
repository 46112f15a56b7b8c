// Set-up path.
#include "fuzz/list_calls.h"

#include "fuzz/clock.h"

namespace lintel::fuzz {

namespace {

void* user_pointer(const Entry& e) {
  return reinterpret_cast<void*>(entry_user_base + e.id);  // NOLINT(performance-no-int-to-ptr)
}

ptl_le_t list_entry(const ptl_me_t& me) {
  return {me.start, me.length, me.ct_handle, me.uid, me.options};
}

}  // namespace

ListCalls::ListCalls(const Phase& phase, EventTaker& events)
    : phase_(phase),
      events_(events),
      handles_(phase.program.entries.size()),
      vectors_(phase.program.entries.size()),
      descriptions_(phase.program.entries.size()),
      calls_(static_cast<std::size_t>(phase.program.shape.threads) + 1) {}

ptl_me_t ListCalls::match_entry(const Entry& e) {
  ptl_me_t me{};
  me.length = e.memory.length();
  if (!e.memory.pieces.empty())
    me.start = phase_.memory.entries.data() + e.memory.pieces.front().start;
  if (e.has(PTL_IOVEC)) {
    vectors_[e.id] = e.memory.vectors(phase_.memory.entries.data());
    me.start = vectors_[e.id].data();
    me.length = vectors_[e.id].size();
  }
  me.ct_handle = e.counter < 0 ? PTL_CT_NONE : phase_.objects.portal_count(e.portal, e.counter);
  me.uid = e.foreign ? phase_.uid + 1 : PTL_UID_ANY;
  me.options = e.options;
  me.match_bits = e.tag;
  me.ignore_bits = ~ptl_match_bits_t{0} << tag_bits | e.ignored_tags;
  me.min_free = e.min_free;
  if (e.source >= 0) {
    me.match_id = phase_.objects.process(e.source);
  } else if (phase_.objects.logical()) {
    me.match_id.rank = PTL_RANK_ANY;
  } else {
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  }
  return me;
}

void ListCalls::append(const Entry& e) {
  const ptl_me_t me = match_entry(e);
  const ptl_le_t le = list_entry(me);
  const ptl_handle_ni_t interface = phase_.objects.handle();
  ptl_handle_any_t& handle = handles_[e.id].handle;
  CallSeen seen{.begin_ns = now_ns()};
  if (e.triggered) {
    ptl_me_t& kept = descriptions_[e.id] = me;  // read when the append is due
    seen.code = PtlTriggeredMEAppend(interface, index_of(e.portal), &kept, e.list, user_pointer(e),
                                     &handle, phase_.objects.trigger_count(e.thread), e.threshold);
  } else if (phase_.program.matching) {
    seen.code = PtlMEAppend(interface, index_of(e.portal), &me, e.list, user_pointer(e), &handle);
  } else {
    seen.code = PtlLEAppend(interface, index_of(e.portal), &le, e.list, user_pointer(e), &handle);
  }
  seen.end_ns = now_ns();
  phase_.problems.expect_ok(seen.code, "the append of an entry");
  if (!e.triggered) note(e.thread, Action::append, e.id, e.portal, seen);
}

void ListCalls::search(const Entry& e) {
  const ptl_me_t me = match_entry(e);
  const ptl_le_t le = list_entry(me);
  const ptl_handle_ni_t interface = phase_.objects.handle();
  CallSeen seen{.begin_ns = now_ns()};
  seen.code = phase_.program.matching
                  ? PtlMESearch(interface, index_of(e.portal), &me, e.search, user_pointer(e))
                  : PtlLESearch(interface, index_of(e.portal), &le, e.search, user_pointer(e));
  seen.end_ns = now_ns();
  phase_.problems.expect_ok(seen.code, "the search of unexpected headers");
  note(e.thread, Action::search, e.id, e.portal, seen);
}

void ListCalls::unlink(int thread, const Entry& e) {
  Handle& entry = handles_[e.id];
  if (entry.handle == PTL_INVALID_HANDLE || entry.ended) return;
  CallSeen seen{.begin_ns = now_ns()};
  seen.code = phase_.program.matching ? PtlMEUnlink(entry.handle) : PtlLEUnlink(entry.handle);
  seen.end_ns = now_ns();
  entry.ended = seen.code == PTL_OK;
  note(thread, Action::unlink, e.id, e.portal, seen);
}

void ListCalls::cancel(const Entry& e) {
  Handle& entry = handles_[e.id];
  phase_.problems.expect_ok(PtlMEUnlink(entry.handle), "PtlMEUnlink of an append that is not due");
  entry.ended = true;
}

void ListCalls::unlink_later(int thread, const Entry& e, uint64_t threshold) {
  phase_.problems.expect_ok(
      PtlTriggeredMEUnlink(handles_[e.id].handle, phase_.objects.trigger_count(thread), threshold),
      "PtlTriggeredMEUnlink");
}

void ListCalls::disable(int thread, int portal) {
  CallSeen seen{.begin_ns = now_ns()};
  seen.code = PtlPTDisable(phase_.objects.handle(), index_of(portal));
  seen.end_ns = now_ns();
  phase_.problems.expect_ok(seen.code, "PtlPTDisable");
  note(thread, Action::disable, static_cast<uint32_t>(portal), portal, seen);
}

void ListCalls::enable(int thread, int portal) {
  CallSeen seen{.begin_ns = now_ns()};
  seen.code = PtlPTEnable(phase_.objects.handle(), index_of(portal));
  seen.end_ns = now_ns();
  phase_.problems.expect_ok(seen.code, "PtlPTEnable");
  note(thread, Action::enable, static_cast<uint32_t>(portal), portal, seen);
}

void ListCalls::note_fired(int thread, const Fired& fired, uint64_t begin_ns) {
  if (fired.what != Fired::What::append && fired.what != Fired::What::unlink) return;
  const bool appends = fired.what == Fired::What::append;
  note(thread, appends ? Action::append : Action::unlink, fired.id,
       phase_.program.entries[fired.id].portal,
       {.code = appends ? PTL_OK : CallSeen::unknown, .begin_ns = begin_ns, .end_ns = now_ns()});
}

void ListCalls::forget_triggered() {
  for (const Entry& e : phase_.program.entries)
    if (e.triggered && !e.starts) handles_[e.id].ended = true;
}

// After calls that end something, all remaining events must be in the queue.
void ListCalls::note(int thread, Action action, uint32_t id, int portal, CallSeen seen) {
  const bool ends = action == Action::unlink || action == Action::disable;
  seen.log_end = ends && !phase_.program.portal(phase_.endpoint, portal).tight
                     ? events_.take_of_portal(portal)
                     : SIZE_MAX;
  calls_[static_cast<std::size_t>(thread)].push_back({action, id, portal, seen});
}

}  // namespace lintel::fuzz
