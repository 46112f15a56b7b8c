// The sequential model of a portal table entry. Set-up path.
#include "fuzz/model.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "conformance/atomic_oracle.h"
#include "support/text.h"

namespace lintel::fuzz {

namespace {

const test::Datatype& datatype_of(const Message& message) {
  for (const test::Datatype& datatype : test::all_datatypes())
    if (datatype.type == message.datatype) return datatype;
  return test::all_datatypes().front();
}

ptl_event_kind_t arrival_kind(Kind kind) {
  switch (kind) {
    case Kind::put:
      return PTL_EVENT_PUT;
    case Kind::get:
      return PTL_EVENT_GET;
    case Kind::atomic:
      return PTL_EVENT_ATOMIC;
    default:
      return PTL_EVENT_FETCH_ATOMIC;
  }
}

ptl_event_kind_t overflow_kind(Kind kind) {
  switch (kind) {
    case Kind::put:
      return PTL_EVENT_PUT_OVERFLOW;
    case Kind::get:
      return PTL_EVENT_GET_OVERFLOW;
    case Kind::atomic:
      return PTL_EVENT_ATOMIC_OVERFLOW;
    default:
      return PTL_EVENT_FETCH_ATOMIC_OVERFLOW;
  }
}

bool is_atomic(Kind kind) { return kind >= Kind::atomic; }
bool replies(Kind kind) {
  return kind == Kind::get || kind == Kind::fetch_atomic || kind == Kind::swap;
}

unsigned needed(Kind kind) {
  switch (kind) {
    case Kind::get:
      return PTL_ME_OP_GET;
    case Kind::fetch_atomic:
    case Kind::swap:
      return PTL_ME_OP_PUT | PTL_ME_OP_GET;
    default:
      return PTL_ME_OP_PUT;
  }
}

// A successful event counts one or its bytes, a failed one always one (spec 3.10.1, 3.12.1).
void add(Count& count, bool success, bool bytes, uint64_t mlength) {
  if (success) {
    count.success += bytes ? mlength : 1;
  } else {
    ++count.failure;
  }
}

std::string text(uint64_t number) { return std::to_string(number); }

bool exceeds(const Count& count, const Count& seen) {
  return count.success > seen.success || count.failure > seen.failure;
}

}  // namespace

uint64_t State::hash() const {
  uint64_t h = mix(mix(0x51ed27, enabled ? 1 : 2), disabled_events);
  for (const auto& list : lists) {
    h = mix(h, 77);
    for (const uint32_t id : list) h = mix(h, id);
  }
  for (const Header& header : unexpected)
    h = mix(mix(mix(h, header.message), header.entry), header.offset);
  for (const auto& [id, live] : entries) {
    h = mix(mix(mix(h, id), static_cast<uint64_t>(live.life)), live.offset);
    for (const std::byte cell : live.cells) h = mix(h, static_cast<uint64_t>(cell));
  }
  for (const Count& count : counts) h = mix(mix(h, count.success), count.failure);
  for (const auto& [id, count] : descriptor_counts)
    h = mix(mix(mix(h, id), count.success), count.failure);
  // Of messages of different threads the order makes no difference any more.
  uint64_t sum = 0;
  for (const Delivery& delivery : deliveries)
    sum += mix(mix(mix(0x51ed27, delivery.message), delivery.entry), delivery.offset);
  h = mix(h, sum);
  return h;
}

Model::Model(const PortalHistory& history, std::vector<std::string>& problems)
    : history_(history),
      program_(*history.program),
      portal_(program_.portal(history.endpoint, history.portal)) {
  for (const Taken& taken : *history.log) {
    const ptl_event_t& event = taken.event;
    const auto complain = [&](const std::string& what) {
      problems.push_back(what + ": " + test::describe(event));
    };
    if (event.pt_index != history.pt_index) complain("event of another portal");
    const uint64_t number = user_number(event);
    const bool known =
        number >= entry_user_base && number - entry_user_base < program_.entries.size() &&
        entry(static_cast<uint32_t>(number - entry_user_base)).portal == history.portal;
    if (event.type == PTL_EVENT_PT_DISABLED) {
      ++disabled_events_;
      continue;
    }
    if (!known) {
      complain("event with the user_ptr of no entry of this portal");
      continue;
    }
    const auto id = static_cast<uint32_t>(number - entry_user_base);
    EntryEvents& mine = entry_events_[id];
    switch (event.type) {
      case PTL_EVENT_LINK:
        ++mine.links;
        break;
      case PTL_EVENT_AUTO_UNLINK:
        ++mine.unlinks;
        break;
      case PTL_EVENT_AUTO_FREE:
        ++mine.frees;
        break;
      case PTL_EVENT_PUT:
      case PTL_EVENT_GET:
      case PTL_EVENT_ATOMIC:
      case PTL_EVENT_FETCH_ATOMIC: {
        const Message* const which = message_of(event);
        if (which == nullptr) {
          complain("event of no message to this portal");
        } else if (!arrivals_.emplace(which->id, &taken).second) {
          complain("message reported twice at its target");
        }
        break;
      }
      default:
        mine.overflow.push_back(&taken);
        break;
    }
  }
  // What atomics leave in their items depends on their order.
  decisive_ = !portal_.tight && !portal_.cells;
  for (const auto& sequence : history.sequences) {
    for (const Element& element : sequence) {
      origin_ns_ = std::min(origin_ns_, element.begin_ns);
      if (element.action == Action::send) {
        if (arrivals_.count(element.id) == 0 && history.messages[element.id].ends == 0)
          decisive_ = false;
      } else if (element.action == Action::enable) {
        // Whether a message triggers flow control or comes after, it looks the same.
        decisive_ &= !portal_.flow_controlled();
      } else if (element.action == Action::search || element.action == Action::append) {
        const Entry& e = entry(element.id);
        if (e.is_search || e.list == PTL_PRIORITY_LIST)
          decisive_ &=
              portal_.has_queue && !e.has(PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE |
                                          PTL_ME_EVENT_COMM_DISABLE);
      }
    }
  }
}

const Message* Model::message_of(const ptl_event_t& event) const {
  const auto mine = [&](uint64_t number) -> const Message* {
    if (number == 0 || number > program_.messages.size()) return nullptr;
    const Message& found = message(static_cast<uint32_t>(number - 1));
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

const Model::EntryEvents& Model::events_of(uint32_t id) const {
  static const EntryEvents none;
  const auto found = entry_events_.find(id);
  return found == entry_events_.end() ? none : found->second;
}

uint64_t Model::completed_ns(uint32_t id) const {
  const MessageSeen& seen = history_.messages[id];
  uint64_t when = seen.ends != 0 ? seen.ended_ns : never;
  if (const auto found = arrivals_.find(id); found != arrivals_.end())
    when = std::min(when, found->second->taken_ns);
  return when;
}

State Model::first() const {
  State state;
  state.enabled = (portal_.options & PTL_PT_ALLOC_DISABLED) == 0;
  return state;
}

bool Model::matches(const Entry& e, const Message& m) const {
  if (!program_.matching) return true;
  return ((m.tag ^ e.tag) & ~e.ignored_tags) == 0 && (e.source < 0 || e.source == m.endpoint);
}

bool Model::used_up(const Entry& e, const LiveEntry& live) const {
  if (e.has(PTL_ME_USE_ONCE)) return true;
  return e.has(PTL_ME_MANAGE_LOCAL) && e.min_free != 0 &&
         e.memory.length() - live.offset < e.min_free;
}

// The priority list first; of each the first entry that matches and accepts the length (spec 2.5,
// 3.12.1).
const Entry* Model::find(const State& state, const Message& m) const {
  for (const auto& list : state.lists) {
    for (const uint32_t id : list) {
      const Entry& e = entry(id);
      if (!matches(e, m)) continue;
      if (program_.matching && e.has(PTL_ME_NO_TRUNCATE) && m.length != 0) {
        const uint64_t offset =
            e.has(PTL_ME_MANAGE_LOCAL) ? state.entries.at(id).offset : m.remote_offset;
        const uint64_t length = e.memory.length();
        if (offset > length || length - offset < m.length) continue;
      }
      return &e;
    }
  }
  return nullptr;
}

bool Model::arrive(State& state, const Message& m, std::string& why) const {
  Outcome outcome;
  outcome.offset = m.remote_offset;
  if (!state.enabled) {
    outcome.fail = PTL_NI_PT_DISABLED;
  } else if (const Entry* const e = find(state, m); e == nullptr) {
    outcome.fail = portal_.flow_controlled() ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
    if (portal_.flow_controlled()) {
      state.enabled = false;
      ++state.disabled_events;
      if (!may_share_disabled_event() && state.disabled_events > disabled_events_) {
        why = "would disable the portal, but there is no PTL_EVENT_PT_DISABLED more";
        return false;
      }
    }
  } else if (e->foreign) {
    outcome.fail = PTL_NI_PERM_VIOLATION;
  } else if ((e->options & needed(m.kind)) != needed(m.kind)) {
    outcome.fail = PTL_NI_OP_VIOLATION;
  } else {
    LiveEntry& live = state.entries.at(e->id);
    outcome.entry = e;
    if (e->has(PTL_ME_MANAGE_LOCAL)) outcome.offset = live.offset;
    const uint64_t length = e->memory.length();
    outcome.mlength =
        std::min(m.length, outcome.offset < length ? length - outcome.offset : uint64_t{0});
    if (is_atomic(m.kind)) outcome.mlength -= outcome.mlength % datatype_of(m).bytes;
    if (e->has(PTL_ME_MANAGE_LOCAL)) {
      live.offset += outcome.mlength;
      // Documented: placed at multiples of 8 bytes.
      if (e->has(PTL_ME_MAY_ALIGN) && !e->has(PTL_ME_LOCAL_INC_UH_RLENGTH))
        live.offset = std::min(length, (live.offset + 7) & ~uint64_t{7});
    }
    std::byte fetched[32];
    apply(state, m, outcome, fetched);
    if (e->list == PTL_PRIORITY_LIST && replies(m.kind) && is_atomic(m.kind) &&
        outcome.mlength != 0 &&
        std::memcmp(fetched, history_.messages[m.id].result, m.length) != 0) {
      why = "fetched another value";
      return false;
    }
    state.deliveries.push_back({m.id, e->id, outcome.offset, outcome.mlength});
    if (is_slow(m)) live.pending_until = std::max(live.pending_until, completed_ns(m.id));
    if (e->list == PTL_OVERFLOW_LIST && !e->has(PTL_ME_UNEXPECTED_HDR_DISABLE)) {
      state.unexpected.push_back({m.id, e->id, outcome.offset, outcome.mlength});
      ++live.headers;
    }
    if (used_up(*e, live)) {
      live.life = Life::unlinked_itself;
      std::erase(state.lists[e->list], e->id);
    }
    if (e->counter >= 0 && e->has(PTL_ME_EVENT_CT_COMM)) {
      Count& count = state.counts[static_cast<std::size_t>(e->counter)];
      add(count, true, e->has(PTL_ME_EVENT_CT_BYTES), outcome.mlength);
      if (exceeds(count, history_.counts[static_cast<std::size_t>(e->counter)])) {
        why = "counter " + text(static_cast<uint64_t>(e->counter)) + " of the portal counted less";
        return false;
      }
    }
  }
  return agrees_with_target(m, outcome, why) && agrees_with_initiator(state, m, outcome, why);
}

bool Model::arrive_without_room(State& state, const Message& m, std::string& why) const {
  const Entry* const e = state.enabled ? find(state, m) : nullptr;
  if (e == nullptr || e->foreign || (e->options & needed(m.kind)) != needed(m.kind)) return false;
  const bool may_unlink =
      e->has(PTL_ME_USE_ONCE) || (e->has(PTL_ME_MANAGE_LOCAL) && e->min_free != 0);
  // PTL_ME_EVENT_SUCCESS_DISABLE lets the events of failures through, which need room as well.
  if (e->has(PTL_ME_EVENT_COMM_DISABLE) && !(may_unlink && !e->has(PTL_ME_EVENT_UNLINK_DISABLE)))
    return false;
  state.enabled = false;
  if (!e->has(PTL_ME_EVENT_FLOWCTRL_DISABLE)) ++state.disabled_events;
  Outcome outcome;
  outcome.offset = m.remote_offset;
  outcome.fail = PTL_NI_PT_DISABLED;
  return agrees_with_target(m, outcome, why) && agrees_with_initiator(state, m, outcome, why);
}

// An atomic that the overflow list takes is not applied (spec 3.15.4).
void Model::apply(State& state, const Message& m, const Outcome& outcome,
                  std::byte* fetched) const {
  const Entry& e = *outcome.entry;
  if (!is_atomic(m.kind) || outcome.mlength == 0 || e.list == PTL_OVERFLOW_LIST) return;
  std::byte* const item = state.entries.at(e.id).cells.data() + outcome.offset;
  std::memcpy(fetched, item, m.length);
  std::byte result[32];
  test::apply_item(m.operation, datatype_of(m), fetched, m.item.data(), m.operand.data(), result);
  std::memcpy(item, result, m.length);
}

bool Model::agrees_with_target(const Message& m, const Outcome& outcome, std::string& why) const {
  const auto found = arrivals_.find(m.id);
  const Entry* const e = outcome.entry;
  const bool told = e != nullptr && portal_.has_queue && !e->has(PTL_ME_EVENT_COMM_DISABLE) &&
                    !e->has(PTL_ME_EVENT_SUCCESS_DISABLE);
  if (!told) {
    if (found == arrivals_.end()) return true;
    why = e != nullptr ? "entry " + text(e->id) + " tells nothing, but there is an event"
                       : "refused with " + test::fail_name(outcome.fail) +
                             ", but there is an event of entry " +
                             text(user_number(found->second->event) - entry_user_base);
    return false;
  }
  if (found == arrivals_.end()) {
    why = "no event from entry " + text(e->id);
    return false;
  }
  const ptl_event_t& event = found->second->event;
  if (user_number(event) != entry_user_base + e->id) {
    why = "would go to entry " + text(e->id) + ", went to " +
          text(user_number(event) - entry_user_base);
    return false;
  }
  why = wrong_field(event, m, *e, outcome.offset, outcome.mlength);
  if (why.empty() && event.type != arrival_kind(m.kind)) why = "type";
  if (why.empty() && event.ptl_list != e->list) why = "ptl_list";
  if (why.empty() && event.ni_fail_type != PTL_NI_OK) why = "ni_fail_type";
  if (!why.empty()) why = "event of the target: " + why;
  return why.empty();
}

std::string Model::wrong_field(const ptl_event_t& event, const Message& m, const Entry& where,
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
  if (mlength != 0 && event.start != history_.memory + where.memory.position(offset))
    return "start";
  return "";
}

bool Model::agrees_with_initiator(State& state, const Message& m, const Outcome& outcome,
                                  std::string& why) const {
  const MessageSeen& seen = history_.messages[m.id];
  const Descriptor& d = program_.descriptors[m.descriptor];
  const bool bytes = (d.options & PTL_MD_EVENT_CT_BYTES) != 0;
  const bool asks = replies(m.kind) || m.ack != PTL_NO_ACK_REQ;
  // Being dropped or refused is completion, too; a disabled portal is not (spec 3.15.1).
  const bool only_completion = !replies(m.kind) && m.ack == PTL_OC_ACK_REQ;
  const ptl_ni_fail_t fail = only_completion && outcome.fail != PTL_NI_PT_DISABLED
                                 ? static_cast<ptl_ni_fail_t>(PTL_NI_OK)
                                 : outcome.fail;
  const bool told = d.has_queue && asks &&
                    (fail != PTL_NI_OK || ((replies(m.kind) || m.ack == PTL_ACK_REQ) &&
                                           (d.options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0));
  if (told != (seen.ends != 0)) {
    why = (told ? "its end was not told, which was " : "its end was told, which was ") +
          test::fail_name(fail);
    return false;
  }
  if (told) {
    if (seen.end.ni_fail_type != fail) {
      why = "its end was told as " + test::fail_name(seen.end.ni_fail_type) + ", would be " +
            test::fail_name(fail);
      return false;
    }
    if (fail == PTL_NI_OK &&
        (seen.end.mlength != outcome.mlength || seen.end.remote_offset != outcome.offset ||
         seen.end.ptl_list != outcome.entry->list)) {
      why = "mlength, remote_offset or ptl_list at the initiator; would be " +
            text(outcome.mlength) + ", " + text(outcome.offset) + ": " + test::describe(seen.end);
      return false;
    }
  }
  if (!d.has_counter) return true;
  Count& count = state.descriptor_counts[m.descriptor];
  if (m.kind != Kind::get && (d.options & PTL_MD_EVENT_CT_SEND) != 0)
    add(count, true, bytes, m.length);
  const unsigned option = replies(m.kind) ? PTL_MD_EVENT_CT_REPLY : PTL_MD_EVENT_CT_ACK;
  if (asks && (d.options & option) != 0)
    add(count, fail == PTL_NI_OK, bytes && !only_completion, outcome.mlength);
  if (exceeds(count, history_.descriptor_counts[m.descriptor])) {
    why = "the counter of descriptor " + text(m.descriptor) + " counted less";
    return false;
  }
  return true;
}

void Model::drop_header(State& state, std::size_t position) const {
  --state.entries.at(state.unexpected[position].entry).headers;
  state.unexpected.erase(state.unexpected.begin() + static_cast<std::ptrdiff_t>(position));
}

// The header leaves the list for the entry or search `by`, which is told.
void Model::claim(State& state, std::size_t position, const Entry& by) const {
  const Header header = state.unexpected[position];
  if (by.counter >= 0 && (by.is_search || by.has(PTL_ME_EVENT_CT_OVERFLOW)))
    add(state.counts[static_cast<std::size_t>(by.counter)], true,
        !by.is_search && by.has(PTL_ME_EVENT_CT_BYTES), header.mlength);
  drop_header(state, position);
}

bool Model::append(State& state, const Element& element, std::string& why) const {
  const Entry& e = entry(element.id);
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
      const Message& m = message(header.message);
      if (!matches(e, m)) {
        ++i;
        continue;
      }
      claim(state, i, e);
      claimed.push_back(header);
      if (is_slow(m)) live.pending_until = std::max(live.pending_until, completed_ns(m.id));
      if (e.has(PTL_ME_USE_ONCE)) break;
      if (e.has(PTL_ME_LOCAL_INC_UH_RLENGTH) && e.has(PTL_ME_MANAGE_LOCAL)) {
        live.offset = std::min(e.memory.length(), live.offset + m.length);
        if (used_up(e, live)) break;
      }
    }
  }
  const bool ended = !claimed.empty() && used_up(e, live);
  // Without PTL_ME_LOCAL_INC_UH_RLENGTH the offset has not moved, and min_free is not looked at.
  const bool linked = !ended || (!e.has(PTL_ME_USE_ONCE) && !e.has(PTL_ME_LOCAL_INC_UH_RLENGTH));
  if (linked) {
    state.lists[e.list].push_back(e.id);
  } else {
    live.life = Life::unlinked_itself;
  }
  const EntryEvents& events = events_of(e.id);
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
  // Those whose data were still on the way come when they are there (spec 2.5).
  std::vector<const Taken*> left(events.overflow);
  for (const Header& header : claimed) {
    const Message& m = message(header.message);
    const auto found = std::find_if(left.begin(), left.end(), [&](const Taken* taken) {
      return message_of(taken->event) == &m;
    });
    if (found == left.end()) {
      why = "would claim message " + text(m.id);
      return false;
    }
    if (!is_slow(m)) {
      for (auto earlier = left.begin(); earlier != found; ++earlier) {
        const Message* const other = message_of((*earlier)->event);
        if (other != nullptr && !is_slow(*other)) {
          why = "claims headers in another order";
          return false;
        }
      }
    }
    const ptl_event_t& event = (*found)->event;
    why = wrong_field(event, m, entry(header.entry), header.offset, header.mlength);
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

bool Model::unlink(State& state, const Element& element, std::string& why) const {
  const Entry& e = entry(element.id);
  LiveEntry& live = state.entries[e.id];
  const int code = element.call->code;
  if (code == PTL_OK) {
    if (live.life != Life::linked || live.headers != 0) {
      why = live.life != Life::linked ? "returned PTL_OK, but the entry has unlinked itself"
                                      : "returned PTL_OK, but there are unexpected headers";
      return false;
    }
    live.life = Life::unlinked_by_call;
    std::erase(state.lists[e.list], e.id);
    return true;
  }
  const bool in_use =
      live.life != Life::linked || live.headers != 0 || live.pending_until > element.begin_ns;
  if (code == PTL_IN_USE && in_use) return true;
  why = "returned " + test::return_code_name(code) + ", would return " +
        (in_use ? "PTL_IN_USE" : "PTL_OK");
  return false;
}

void Model::search(const State& state, const Element& element, std::string& why,
                   std::vector<State>& next) const {
  const Entry& e = entry(element.id);
  if (element.call->code != PTL_OK) {
    why = "returned " + test::return_code_name(element.call->code);
    return;
  }
  const bool deletes = e.search == PTL_SEARCH_DELETE;
  const bool once = e.has(PTL_ME_USE_ONCE);
  std::vector<std::size_t> found;
  std::vector<std::size_t> lengths;  // of what may be found
  for (std::size_t i = 0; i < state.unexpected.size(); ++i) {
    const Message& m = message(state.unexpected[i].message);
    if (!matches(e, m)) continue;
    // Documented: it ends before the first header whose data still arrive.
    if (is_slow(m) && completed_ns(m.id) > element.begin_ns) lengths.push_back(found.size());
    if (once && found.size() == 1) break;
    found.push_back(i);
  }
  lengths.push_back(found.size());
  const bool finds_told = portal_.has_queue && !e.has(PTL_ME_EVENT_SUCCESS_DISABLE) &&
                          !e.has(deletes ? PTL_ME_EVENT_OVER_DISABLE : PTL_ME_EVENT_COMM_DISABLE);
  const bool end_told = portal_.has_queue && !e.has(PTL_ME_EVENT_COMM_DISABLE);
  const std::vector<const Taken*>& events = events_of(e.id).overflow;
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
      const Message& m = message(header.message);
      const ptl_event_t& event = events[i]->event;
      std::string wrong = wrong_field(event, m, entry(header.entry), header.offset, header.mlength);
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

std::vector<State> Model::after(const State& state, const Element& element,
                                std::string& why) const {
  std::vector<State> next;
  if (element.action == Action::search) {
    search(state, element, why, next);
    return next;
  }
  State changed = state;
  bool agrees = true;
  switch (element.action) {
    case Action::send:
      agrees = arrive(changed, message(element.id), why);
      if (portal_.tight) {
        State refused = state;
        std::string unused;
        if (arrive_without_room(refused, message(element.id), unused))
          next.push_back(std::move(refused));
      }
      if (element.may_vanish && arrivals_.count(element.id) == 0) next.push_back(state);
      break;
    case Action::append:
      agrees = append(changed, element, why);
      break;
    case Action::unlink:
      agrees = unlink(changed, element, why);
      break;
    case Action::disable:
      changed.enabled = false;
      break;
    default:
      changed.enabled = true;
      break;
  }
  if (agrees) next.push_back(std::move(changed));
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
  const bool none_missing = may_share_disabled_event()
                                ? disabled_events_ <= state.disabled_events &&
                                      (disabled_events_ != 0 || state.disabled_events == 0)
                                : disabled_events_ == state.disabled_events;
  if (portal_.has_queue && !none_missing)
    return "PTL_EVENT_PT_DISABLED came " + text(disabled_events_) + " times, would " +
           text(state.disabled_events);
  for (const auto& [id, live] : state.entries) {
    const Entry& e = entry(id);
    const EntryEvents& events = events_of(id);
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

std::string Model::describe(const Element& element) const {
  const auto us = [&](uint64_t ns) { return ns == never ? "?" : text((ns - origin_ns_) / 1000); };
  std::string result =
      name(element) + " [" + us(element.begin_ns) + ".." + us(element.end_ns) + " us";
  if (element.call != nullptr) {
    if (element.call->code != PTL_OK) result += ", " + test::return_code_name(element.call->code);
  } else {
    const MessageSeen& seen = history_.messages[element.id];
    if (seen.ends != 0) result += ", " + test::fail_name(seen.end.ni_fail_type);
    if (const auto found = arrivals_.find(element.id); found != arrivals_.end())
      result += ", to entry " + text(user_number(found->second->event) - entry_user_base);
  }
  return result + "]";
}

std::string Model::name(const Element& element) const {
  if (element.action == Action::send) {
    const Message& m = message(element.id);
    static constexpr const char* kinds[] = {"put", "get", "atomic", "fetch-atomic", "swap"};
    return "message " + text(m.id) + " (" + kinds[static_cast<int>(m.kind)] + " of " +
           text(m.length) + " at " + text(m.remote_offset) + ", tag " + text(m.tag) +
           ", endpoint " + std::to_string(m.endpoint) + " thread " + std::to_string(m.thread) +
           (m.triggered ? ", triggered" : "") + ")";
  }
  if (element.action == Action::disable) return "PtlPTDisable";
  if (element.action == Action::enable) return "PtlPTEnable";
  const Entry& e = entry(element.id);
  const char* what = element.action == Action::append   ? "append of"
                     : element.action == Action::unlink ? "unlink of"
                     : e.search == PTL_SEARCH_DELETE    ? "search and delete"
                                                        : "search";
  char options[16];
  std::snprintf(options, sizeof options, "%#x", e.options);
  return std::string(what) + " entry " + text(e.id) + " (" +
         (e.is_search                   ? "search"
          : e.list == PTL_OVERFLOW_LIST ? "overflow"
                                        : "priority") +
         ", " + text(e.memory.length()) + " bytes, options " + options + ", tag " + text(e.tag) +
         " ignoring " + text(e.ignored_tags) + ", min_free " + text(e.min_free) + ", counter " +
         std::to_string(e.counter) + ")";
}

}  // namespace lintel::fuzz
