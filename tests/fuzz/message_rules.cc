// The effects of messages in the model. Set-up path.
#include "fuzz/message_rules.h"

#include <algorithm>
#include <cstring>

#include "fuzz/kinds.h"
#include "fuzz/matching_rules.h"
#include "support/text.h"

namespace lintel::fuzz {

namespace {

std::string text(uint64_t number) { return std::to_string(number); }

bool exceeds(const Count& count, const Count& seen) {
  return count.success > seen.success || count.failure > seen.failure;
}

}  // namespace

// Searches the priority list first. In each list, the first entry that matches and accepts the
// length is used (spec 2.5, 3.12.1).
const Entry* MessageRules::find(const State& state, const Message& m) const {
  for (const auto& list : state.lists) {
    for (const uint32_t id : list) {
      const Entry& e = program_.entries[id];
      if (!matches(program_, e, m)) continue;
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

bool MessageRules::arrive(State& state, const Message& m, std::string& why) const {
  Outcome outcome;
  outcome.offset = m.remote_offset;
  if (!state.enabled) {
    outcome.fail = PTL_NI_PT_DISABLED;
  } else if (const Entry* const e = find(state, m); e == nullptr) {
    outcome.fail = portal_.flow_controlled() ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
    if (portal_.flow_controlled()) {
      state.enabled = false;
      ++state.disabled_events;
      if (!portal_.tight && state.disabled_events > evidence_.disabled_events()) {
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
      // Documented: the offset is a multiple of 8 bytes.
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
    if (is_slow(m)) live.pending_until = std::max(live.pending_until, evidence_.completed_ns(m.id));
    if (e->list == PTL_OVERFLOW_LIST && !e->has(PTL_ME_UNEXPECTED_HDR_DISABLE)) {
      for (const Header& header : state.unexpected) {
        if (!evidence_.contradicts_order(header.message, m.id)) continue;
        why = "its header was found before that of message " + text(header.message);
        return false;
      }
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
  if (memory_.contradicts(m, outcome.entry, outcome.offset, outcome.mlength)) {
    why = "the memory of the entries shows its data elsewhere";
    return false;
  }
  return agrees_with_target(m, outcome, why) && agrees_with_initiator(state, m, outcome, why);
}

bool MessageRules::arrive_without_room(State& state, const Message& m, std::string& why) const {
  const Entry* const e = state.enabled ? find(state, m) : nullptr;
  if (e == nullptr || e->foreign || (e->options & needed(m.kind)) != needed(m.kind)) return false;
  const bool may_unlink =
      e->has(PTL_ME_USE_ONCE) || (e->has(PTL_ME_MANAGE_LOCAL) && e->min_free != 0);
  // PTL_ME_EVENT_SUCCESS_DISABLE does not suppress events of failures, which need slots as well.
  if (e->has(PTL_ME_EVENT_COMM_DISABLE) && !(may_unlink && !e->has(PTL_ME_EVENT_UNLINK_DISABLE)))
    return false;
  if (memory_.shows(m)) {
    why = "the memory of the entries shows its data";
    return false;
  }
  state.enabled = false;
  if (!e->has(PTL_ME_EVENT_FLOWCTRL_DISABLE)) ++state.disabled_events;
  Outcome outcome;
  outcome.offset = m.remote_offset;
  outcome.fail = PTL_NI_PT_DISABLED;
  return agrees_with_target(m, outcome, why) && agrees_with_initiator(state, m, outcome, why);
}

// An atomic that matches an entry of the overflow list is not applied (spec 3.15.4).
void MessageRules::apply(State& state, const Message& m, const Outcome& outcome,
                         std::byte* fetched) const {
  const Entry& e = *outcome.entry;
  if (!is_atomic(m.kind) || outcome.mlength == 0 || e.list == PTL_OVERFLOW_LIST) return;
  std::byte* const item = state.entries.at(e.id).cells.data() + outcome.offset;
  std::memcpy(fetched, item, m.length);
  std::byte result[32];
  test::apply_item(m.operation, datatype_of(m), fetched, m.item.data(), m.operand.data(), result);
  std::memcpy(item, result, m.length);
}

bool MessageRules::agrees_with_target(const Message& m, const Outcome& outcome,
                                      std::string& why) const {
  const Taken* const found = evidence_.arrival_of(m.id);
  const Entry* const e = outcome.entry;
  const bool told = e != nullptr && portal_.has_queue && !e->has(PTL_ME_EVENT_COMM_DISABLE) &&
                    !e->has(PTL_ME_EVENT_SUCCESS_DISABLE);
  if (!told) {
    if (found == nullptr) return true;
    why = e != nullptr ? "entry " + text(e->id) + " tells nothing, but there is an event"
                       : "refused with " + test::fail_name(outcome.fail) +
                             ", but there is an event of entry " +
                             text(user_number(found->event) - entry_user_base);
    return false;
  }
  if (found == nullptr) {
    why = "no event from entry " + text(e->id);
    return false;
  }
  const ptl_event_t& event = found->event;
  if (user_number(event) != entry_user_base + e->id) {
    why = "would go to entry " + text(e->id) + ", went to " +
          text(user_number(event) - entry_user_base);
    return false;
  }
  why = evidence_.wrong_field(event, m, *e, outcome.offset, outcome.mlength);
  if (why.empty() && event.type != arrival_kind(m.kind)) why = "type";
  if (why.empty() && event.ptl_list != e->list) why = "ptl_list";
  if (why.empty() && event.ni_fail_type != PTL_NI_OK) why = "ni_fail_type";
  if (!why.empty()) why = "event of the target: " + why;
  return why.empty();
}

bool MessageRules::agrees_with_initiator(State& state, const Message& m, const Outcome& outcome,
                                         std::string& why) const {
  const MessageSeen& seen = history_.messages[m.id];
  const Descriptor& d = program_.descriptors[m.descriptor];
  const bool bytes = (d.options & PTL_MD_EVENT_CT_BYTES) != 0;
  const bool asks = replies(m.kind) || m.ack != PTL_NO_ACK_REQ;
  // A dropped or refused message has also completed; one for a disabled portal has not (spec
  // 3.15.1).
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

}  // namespace lintel::fuzz
