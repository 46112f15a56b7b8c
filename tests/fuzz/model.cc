// The sequential model of a portal table entry. Set-up path.
#include "fuzz/model.h"

#include <cstring>
#include <utility>

namespace lintel::fuzz {

namespace {

std::string text(uint64_t number) { return std::to_string(number); }

}  // namespace

Model::Model(const PortalHistory& history, const Evidence& evidence)
    : history_(history),
      evidence_(evidence),
      program_(*history.program),
      portal_(program_.portal(history.endpoint, history.portal)),
      messages_(history, evidence),
      lists_(history, evidence),
      decisive_(evidence.is_decisive()) {}

State Model::first() const {
  State state;
  state.enabled = (portal_.options & PTL_PT_ALLOC_DISABLED) == 0;
  return state;
}

std::vector<State> Model::after(const State& state, const Element& element,
                                std::string& why) const {
  std::vector<State> next;
  const auto add_if = [&](bool agrees, State& changed) {
    if (agrees) next.push_back(std::move(changed));
  };
  State changed = state;
  switch (element.action) {
    case Action::send: {
      const Message& message = program_.messages[element.id];
      if (portal_.tight) {
        State refused = state;
        std::string unused;
        add_if(messages_.arrive_without_room(refused, message, unused), refused);
      }
      if (element.may_vanish && messages_.may_be_lost(message)) next.push_back(state);
      add_if(messages_.arrive(changed, message, why), changed);
      break;
    }
    case Action::append:
      add_if(lists_.append(changed, element, why), changed);
      break;
    case Action::unlink:
      lists_.unlink(state, element, why, next);
      break;
    case Action::search:
      lists_.search(state, element, why, next);
      break;
    default:
      changed.enabled = element.action != Action::disable;
      next.push_back(std::move(changed));
      break;
  }
  return next;
}

std::string Model::disagreement(const State& state) const {
  for (std::size_t i = 0; i < portal_counters; ++i) {
    const Count& is = history_.counts[i];
    if (is == state.counts[i]) continue;
    return "counter " + text(i) + " of the portal is " + text(is.success) + "/" + text(is.failure) +
           ", would be " + text(state.counts[i].success) + "/" + text(state.counts[i].failure);
  }
  for (uint32_t i = 0; i < program_.descriptors.size(); ++i) {
    const Descriptor& d = program_.descriptors[i];
    if (!d.has_counter || d.target != history_.endpoint || d.portal != history_.portal) continue;
    const auto found = state.descriptor_counts.find(i);
    const Count would = found == state.descriptor_counts.end() ? Count{} : found->second;
    const Count& is = history_.descriptor_counts[i];
    if (is == would) continue;
    return "the counter of descriptor " + text(i) + " is " + text(is.success) + "/" +
           text(is.failure) + ", would be " + text(would.success) + "/" + text(would.failure);
  }
  const bool none_missing =
      portal_.tight ? evidence_.disabled_events() <= state.disabled_events &&
                          (evidence_.disabled_events() != 0 || state.disabled_events == 0)
                    : evidence_.disabled_events() == state.disabled_events;
  if (portal_.has_queue && !none_missing)
    return "PTL_EVENT_PT_DISABLED came " + text(evidence_.disabled_events()) + " times, would " +
           text(state.disabled_events);
  for (const auto& [id, live] : state.entries) {
    const Entry& e = program_.entries[id];
    const EntryEvents& events = evidence_.events_of(id);
    const bool told = portal_.has_queue && !e.has(PTL_ME_EVENT_UNLINK_DISABLE) &&
                      live.life == Life::unlinked_itself;
    if (events.unlinks != (told ? 1u : 0u))
      return "PTL_EVENT_AUTO_UNLINK of entry " + text(id) + " came " + text(events.unlinks) +
             " times";
    const bool freed = told && e.list == PTL_OVERFLOW_LIST && !e.has(PTL_ME_UNEXPECTED_HDR_DISABLE);
    if (events.frees != (freed ? 1u : 0u))
      return "PTL_EVENT_AUTO_FREE of entry " + text(id) + " came " + text(events.frees) + " times";
    std::vector<std::byte> cells(live.cells.size());
    e.memory.for_each(0, cells.size(), [&](uint64_t start, uint64_t bytes, uint64_t done) {
      std::memcpy(cells.data() + done, history_.memory + start, bytes);
    });
    if (cells != live.cells) return "the items of entry " + text(id) + " have other values";
  }
  return "";
}

}  // namespace lintel::fuzz
