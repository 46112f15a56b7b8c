// Assignment of the events of a portal to operations. Set-up path.
#include "fuzz/evidence.h"

#include <algorithm>
#include <cstring>

#include "fuzz/kinds.h"
#include "fuzz/matching_rules.h"
#include "support/text.h"

namespace lintel::fuzz {

namespace {
std::string text(uint64_t number) { return std::to_string(number); }
}  // namespace

Evidence::Evidence(const PortalHistory& history, std::vector<std::string>& problems)
    : history_(history), program_(*history.program) {
  for (const Taken& taken : *history.log) file(taken, problems);
}

void Evidence::file(const Taken& taken, std::vector<std::string>& problems) {
  const ptl_event_t& event = taken.event;
  const auto complain = [&](const std::string& what) {
    problems.push_back(what + ": " + test::describe(event));
  };
  if (event.pt_index != history_.pt_index) complain("event of another portal");
  if (event.type == PTL_EVENT_PT_DISABLED) {
    ++disabled_events_;
    return;
  }
  const uint64_t number = user_number(event);
  if (number < entry_user_base || number - entry_user_base >= program_.entries.size() ||
      program_.entries[number - entry_user_base].portal != history_.portal)
    return complain("event with the user_ptr of no entry of this portal");
  const auto id = static_cast<uint32_t>(number - entry_user_base);
  EntryEvents& mine = entry_events_[id];
  switch (event.type) {
    case PTL_EVENT_LINK:
      ++mine.links;
      break;
    case PTL_EVENT_AUTO_UNLINK:
      ++mine.unlinks;
      return;
    case PTL_EVENT_AUTO_FREE:
      ++mine.frees;
      return;
    case PTL_EVENT_PUT:
    case PTL_EVENT_GET:
    case PTL_EVENT_ATOMIC:
    case PTL_EVENT_FETCH_ATOMIC: {
      const Message* const which = message_of(event);
      if (which == nullptr)
        complain("event of no message to this portal");
      else if (!arrivals_.emplace(which->id, &taken).second)
        complain("message reported twice at its target");
      return;
    }
    case PTL_EVENT_ERROR:
      complain("an append was refused");
      return;
    default:
      if (const Message* const found = message_of(event);
          found != nullptr && event.ni_fail_type != PTL_NI_NO_MATCH)
        found_by_[found->id].emplace(id, mine.overflow.size());
      mine.overflow.push_back(&taken);
      break;
  }
  entry_positions_.emplace(id, static_cast<std::size_t>(&taken - history_.log->data()));
}

const Message* Evidence::message_of(const ptl_event_t& event) const {
  const auto mine = [&](uint64_t number) -> const Message* {
    if (number == 0 || number > program_.messages.size()) return nullptr;
    const Message& found = program_.messages[number - 1];
    return found.target == history_.endpoint && found.portal == history_.portal && found.starts
               ? &found
               : nullptr;
  };
  if (program_.matching) return mine(event.match_bits >> tag_bits);
  if (event.type != PTL_EVENT_GET && event.type != PTL_EVENT_GET_OVERFLOW &&
      !(event.type == PTL_EVENT_SEARCH && event.hdr_data == 0))
    return mine(event.hdr_data);
  for (const Message& candidate : program_.messages) {
    if (candidate.kind == Kind::get && candidate.target == history_.endpoint &&
        candidate.portal == history_.portal && candidate.starts &&
        candidate.length == event.rlength &&
        std::memcmp(&history_.processes[static_cast<std::size_t>(candidate.endpoint)],
                    &event.initiator, sizeof event.initiator) == 0)
      return &candidate;
  }
  return nullptr;
}

const Taken* Evidence::arrival_of(uint32_t id) const {
  const auto found = arrivals_.find(id);
  return found == arrivals_.end() ? nullptr : found->second;
}

bool Evidence::contradicts_order(uint32_t earlier, uint32_t later) const {
  const auto first = found_by_.find(earlier);
  const auto second = found_by_.find(later);
  if (first == found_by_.end() || second == found_by_.end()) return false;
  const bool slow = is_slow(program_.messages[earlier]) || is_slow(program_.messages[later]);
  return std::any_of(first->second.begin(), first->second.end(), [&](const auto& found) {
    const auto& [entry, place] = found;
    const auto other = second->second.find(entry);
    // The events of an append wait for the data.
    return other != second->second.end() && other->second < place &&
           (program_.entries[entry].is_search || !slow);
  });
}

const EntryEvents& Evidence::events_of(uint32_t id) const {
  static const EntryEvents none;
  const auto found = entry_events_.find(id);
  return found == entry_events_.end() ? none : found->second;
}

uint64_t Evidence::completed_ns(uint32_t id) const {
  const MessageSeen& seen = history_.messages[id];
  uint64_t when = seen.ends != 0 ? seen.ended_ns : never;
  if (const auto found = arrivals_.find(id); found != arrivals_.end())
    when = std::min(when, found->second->taken_ns);
  return when;
}

std::size_t Evidence::position_of(const Element& element) const {
  if (element.action == Action::send) {
    const Taken* const arrival = arrival_of(element.id);
    return arrival == nullptr ? unknown : static_cast<std::size_t>(arrival - history_.log->data());
  }
  if (element.action != Action::append && element.action != Action::search) return unknown;
  const auto found = entry_positions_.find(element.id);
  return found == entry_positions_.end() ? unknown : found->second;
}

bool Evidence::is_decisive() const {
  const Portal& portal = program_.portal(history_.endpoint, history_.portal);
  // The results of atomics depend on their order.
  if (portal.tight || portal.cells) return false;
  const auto is_known = [&](const Element& element) {
    switch (element.action) {
      case Action::send:
        return arrivals_.count(element.id) != 0 || history_.messages[element.id].ends != 0;
      case Action::enable:
      case Action::disable:
        // A message that triggers flow control cannot be distinguished from one that arrives at
        // the disabled entry.
        return !portal.flow_controlled();
      case Action::unlink:
        return element.call->code != CallSeen::unknown;
      case Action::search:
      case Action::append: {
        const Entry& e = program_.entries[element.id];
        if (!e.is_search && e.list != PTL_PRIORITY_LIST) return true;
        return portal.has_queue && !e.has(PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE |
                                          PTL_ME_EVENT_COMM_DISABLE);
      }
      default:
        return true;
    }
  };
  return std::all_of(history_.sequences.begin(), history_.sequences.end(), [&](const auto& all) {
    return std::all_of(all.begin(), all.end(), is_known);
  });
}

std::string Evidence::wrong_field(const ptl_event_t& event, const Message& m, const Entry& where,
                                  uint64_t offset, uint64_t mlength) const {
  const auto differs = [](const char* name, uint64_t is, uint64_t expected) {
    return std::string(name) + " is " + text(is) + ", expected " + text(expected);
  };
  if (event.rlength != m.length) return differs("rlength", event.rlength, m.length);
  if (event.mlength != mlength) return differs("mlength", event.mlength, mlength);
  if (event.remote_offset != m.remote_offset)
    return differs("remote_offset", event.remote_offset, m.remote_offset);
  if (event.uid != history_.uid) return differs("uid", event.uid, history_.uid);
  if (m.kind != Kind::get && event.hdr_data != m.id + 1)
    return differs("hdr_data", event.hdr_data, m.id + 1);
  const uint64_t bits = program_.matching ? (uint64_t{m.id} + 1) << tag_bits | m.tag : 0;
  if (event.match_bits != bits) return differs("match_bits", event.match_bits, bits);
  if (std::memcmp(&event.initiator, &history_.processes[static_cast<std::size_t>(m.endpoint)],
                  sizeof event.initiator) != 0)
    return "initiator";
  if (is_atomic(m.kind) &&
      (event.atomic_operation != m.operation || event.atomic_type != m.datatype))
    return "atomic_operation or atomic_type";
  if (is_placed(where, offset) && event.start != history_.memory + where.memory.position(offset))
    return "start";
  return "";
}

}  // namespace lintel::fuzz
