// Appends, unlinks and searches in the model. Set-up path.
#include "fuzz/list_rules.h"

#include <algorithm>

#include "fuzz/kinds.h"
#include "fuzz/matching_rules.h"
#include "support/text.h"

namespace lintel::fuzz {

namespace {

std::string text(uint64_t number) { return std::to_string(number); }

}  // namespace

void ListRules::drop_header(State& state, std::size_t position) const {
  --state.entries.at(state.unexpected[position].entry).headers;
  state.unexpected.erase(state.unexpected.begin() + static_cast<std::ptrdiff_t>(position));
}

// Removes the header from the list for the entry or search `by`, and counts that for it.
void ListRules::claim(State& state, std::size_t position, const Entry& by) const {
  const Header header = state.unexpected[position];
  if (by.counter >= 0 && (by.is_search || by.has(PTL_ME_EVENT_CT_OVERFLOW)))
    add(state.counts[static_cast<std::size_t>(by.counter)], true,
        !by.is_search && by.has(PTL_ME_EVENT_CT_BYTES), header.mlength);
  drop_header(state, position);
}

bool ListRules::append(State& state, const Element& element, std::string& why) const {
  const Entry& e = program_.entries[element.id];
  if (element.call->code != PTL_OK) {
    why = "returned " + test::return_code_name(element.call->code);
    return false;
  }
  LiveEntry& live = state.entries[e.id];
  live.life = Life::linked;
  if (portal_.cells && e.list == PTL_PRIORITY_LIST) {
    live.cells.resize(e.memory.length());
    e.memory.for_each(0, live.cells.size(), [&](uint64_t start, uint64_t bytes, uint64_t done) {
      for (uint64_t i = 0; i < bytes; ++i)
        live.cells[done + i] = background_at(history_.endpoint, start + i);
    });
  }
  std::vector<Header> claimed;
  if (e.list == PTL_PRIORITY_LIST) {
    for (std::size_t i = 0; i < state.unexpected.size();) {
      const Header header = state.unexpected[i];
      const Message& m = program_.messages[header.message];
      if (!matches(program_, e, m)) {
        ++i;
        continue;
      }
      claim(state, i, e);
      claimed.push_back(header);
      if (is_slow(m))
        live.pending_until = std::max(live.pending_until, evidence_.completed_ns(m.id));
      if (e.has(PTL_ME_USE_ONCE)) break;
      if (e.has(PTL_ME_LOCAL_INC_UH_RLENGTH) && e.has(PTL_ME_MANAGE_LOCAL)) {
        live.offset = std::min(e.memory.length(), live.offset + m.length);
        if (used_up(e, live)) break;
      }
    }
  }
  const bool ended = !claimed.empty() && used_up(e, live);
  // Without PTL_ME_LOCAL_INC_UH_RLENGTH the offset has not changed, and min_free is not checked.
  const bool linked = !ended || (!e.has(PTL_ME_USE_ONCE) && !e.has(PTL_ME_LOCAL_INC_UH_RLENGTH));
  if (linked) {
    state.lists[e.list].push_back(e.id);
  } else {
    live.life = Life::unlinked_itself;
  }
  const EntryEvents& events = evidence_.events_of(e.id);
  const uint32_t links = linked && portal_.has_queue && !e.has(PTL_ME_EVENT_LINK_DISABLE) ? 1 : 0;
  if (events.links != links) {
    why = "PTL_EVENT_LINK came " + text(events.links) + " times, would " + text(links);
    return false;
  }
  const bool told = portal_.has_queue && !e.has(PTL_ME_EVENT_OVER_DISABLE) &&
                    !e.has(PTL_ME_EVENT_SUCCESS_DISABLE);
  if (!told) claimed.clear();
  if (events.overflow.size() != claimed.size()) {
    why =
        "claimed " + text(events.overflow.size()) + " headers, would claim " + text(claimed.size());
    return false;
  }
  // Events of headers whose data were still arriving are posted when the data are complete (spec
  // 2.5).
  std::vector<const Taken*> left(events.overflow);
  for (const Header& header : claimed) {
    const Message& m = program_.messages[header.message];
    const auto found = std::find_if(left.begin(), left.end(), [&](const Taken* taken) {
      return evidence_.message_of(taken->event) == &m;
    });
    if (found == left.end()) {
      why = "would claim message " + text(m.id);
      return false;
    }
    if (!is_slow(m)) {
      for (auto earlier = left.begin(); earlier != found; ++earlier) {
        const Message* const other = evidence_.message_of((*earlier)->event);
        if (other != nullptr && !is_slow(*other)) {
          why = "claims headers in another order";
          return false;
        }
      }
    }
    const ptl_event_t& event = (*found)->event;
    why = evidence_.wrong_field(event, m, program_.entries[header.entry], header.offset,
                                header.mlength);
    if (why.empty() && event.type != overflow_kind(m.kind)) why = "type";
    if (why.empty() && event.ni_fail_type != PTL_NI_OK) why = "ni_fail_type";
    if (!why.empty()) {
      why = "overflow event: " + why;
      return false;
    }
    left.erase(found);
  }
  return true;
}

void ListRules::unlink(const State& state, const Element& element, std::string& why,
                       std::vector<State>& next) const {
  const uint32_t id = element.id;
  static const LiveEntry absent;
  const auto found = state.entries.find(id);
  const LiveEntry& live = found == state.entries.end() ? absent : found->second;
  const int code = element.call->code;
  const bool may_succeed = live.life == Life::linked && live.headers == 0;
  const bool may_be_refused = !may_succeed || live.pending_until > element.begin_ns;
  if (may_succeed && (code == PTL_OK || code == CallSeen::unknown)) {
    State& after = next.emplace_back(state);
    after.entries.at(id).life = Life::unlinked_by_call;
    std::erase(after.lists[program_.entries[id].list], id);
  }
  // The handle of an entry that has ended may still be known or already be invalid.
  const bool has_ended = live.life == Life::unlinked_by_call || live.life == Life::unlinked_itself;
  const bool is_refusal =
      code == PTL_IN_USE || code == CallSeen::unknown || (code == PTL_ARG_INVALID && has_ended);
  if (may_be_refused && is_refusal) next.push_back(state);
  if (next.empty())
    why = "returned " + test::return_code_name(code) +
          (may_succeed                 ? ", would return PTL_OK"
           : live.life == Life::linked ? ", but there are unexpected headers"
                                       : ", but the entry is not linked");
}

void ListRules::search(const State& state, const Element& element, std::string& why,
                       std::vector<State>& next) const {
  const Entry& e = program_.entries[element.id];
  if (element.call->code != PTL_OK) {
    why = "returned " + test::return_code_name(element.call->code);
    return;
  }
  const bool deletes = e.search == PTL_SEARCH_DELETE;
  const bool once = e.has(PTL_ME_USE_ONCE);
  std::vector<std::size_t> found;
  std::vector<std::size_t> lengths;  // possible numbers of headers found
  for (std::size_t i = 0; i < state.unexpected.size(); ++i) {
    const Message& m = program_.messages[state.unexpected[i].message];
    if (!matches(program_, e, m)) continue;
    // Documented: a search ends before the first header whose data are still arriving.
    if (is_slow(m) && evidence_.completed_ns(m.id) > element.begin_ns)
      lengths.push_back(found.size());
    if (once && found.size() == 1) break;
    found.push_back(i);
  }
  lengths.push_back(found.size());
  const bool finds_told = portal_.has_queue && !e.has(PTL_ME_EVENT_SUCCESS_DISABLE) &&
                          !e.has(deletes ? PTL_ME_EVENT_OVER_DISABLE : PTL_ME_EVENT_COMM_DISABLE);
  const bool end_told = portal_.has_queue && !e.has(PTL_ME_EVENT_COMM_DISABLE);
  const std::vector<const Taken*>& events = evidence_.events_of(e.id).overflow;
  for (const std::size_t length : lengths) {
    if (once && length > 1) continue;
    const bool ends = !once || length == 0;
    const std::size_t expected = (finds_told ? length : 0) + (end_told && ends ? 1 : 0);
    if (events.size() != expected) {
      why = text(events.size()) + " events, would be " + text(expected);
      continue;
    }
    bool agrees = true;
    for (std::size_t i = 0; agrees && finds_told && i < length; ++i) {
      const Header& header = state.unexpected[found[i]];
      const Message& m = program_.messages[header.message];
      const ptl_event_t& event = events[i]->event;
      std::string wrong = evidence_.wrong_field(event, m, program_.entries[header.entry],
                                                header.offset, header.mlength);
      if (wrong.empty() &&
          event.type !=
              (deletes ? overflow_kind(m.kind) : static_cast<ptl_event_kind_t>(PTL_EVENT_SEARCH)))
        wrong = "type";
      if (wrong.empty() && event.ni_fail_type != PTL_NI_OK) wrong = "ni_fail_type";
      agrees = wrong.empty();
      if (!agrees) why = "would find message " + text(m.id) + ": " + wrong;
    }
    if (agrees && end_told && ends) {
      const ptl_event_t& event = events.back()->event;
      agrees = event.type == PTL_EVENT_SEARCH && event.ni_fail_type == PTL_NI_NO_MATCH;
      if (!agrees) why = "does not end with PTL_NI_NO_MATCH";
    }
    if (!agrees) continue;
    State& after = next.emplace_back(state);
    for (std::size_t i = length; i-- > 0;) {
      if (deletes) {
        claim(after, found[i], e);
      } else if (e.counter >= 0) {
        ++after.counts[static_cast<std::size_t>(e.counter)].success;
      }
    }
    if (ends && e.counter >= 0) ++after.counts[static_cast<std::size_t>(e.counter)].failure;
  }
}

}  // namespace lintel::fuzz
