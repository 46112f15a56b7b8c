// Sums of what operations may count. Set-up path.
#include "fuzz/count_bounds.h"

#include <algorithm>

#include "fuzz/kinds.h"
#include "fuzz/matching_rules.h"

namespace lintel::fuzz {

namespace {

// The count of a success of `length` bytes.
uint64_t success_of(bool bytes, uint64_t length) { return bytes ? length : 1; }

Count count_of(const State& state, uint32_t descriptor) {
  const auto found = state.descriptor_counts.find(descriptor);
  return found == state.descriptor_counts.end() ? Count{} : found->second;
}

bool may_become(const Count& now, const Count& to_come, const Count& seen) {
  return now.success <= seen.success && now.failure <= seen.failure &&
         seen.success - now.success <= to_come.success &&
         seen.failure - now.failure <= to_come.failure;
}

}  // namespace

CountBounds::CountBounds(const PortalHistory& history)
    : history_(history), program_(*history.program) {
  for (uint32_t i = 0; i < program_.descriptors.size(); ++i) {
    const Descriptor& d = program_.descriptors[i];
    if (d.has_counter && d.target == history.endpoint && d.portal == history.portal)
      descriptors_.push_back(i);
  }
  for (const Message& m : program_.messages)
    if (m.target == history.endpoint && m.portal == history.portal) messages_.push_back(&m);
  for (const Entry& e : program_.entries)
    if (e.endpoint == history.endpoint && e.portal == history.portal) entries_.push_back(&e);
  for (const auto& sequence : history.sequences) {
    std::vector<Counts> sums(sequence.size() + 1, Counts(portal_counters + descriptors_.size()));
    for (std::size_t i = sequence.size(); i-- > 0;) {
      const Counts most = most_of(sequence[i]);
      for (std::size_t c = 0; c < most.size(); ++c)
        sums[i][c] = {sums[i + 1][c].success + most[c].success,
                      sums[i + 1][c].failure + most[c].failure};
    }
    to_come_.push_back(std::move(sums));
  }
}

CountBounds::Counts CountBounds::most_of(const Element& element) const {
  Counts most(portal_counters + descriptors_.size());
  if (element.action == Action::send)
    add_message(most, program_.messages[element.id]);
  else if (element.action == Action::append || element.action == Action::search)
    add_list_call(most, element);
  return most;
}

void CountBounds::add_message(Counts& most, const Message& m) const {
  for (const Entry* const e : entries_) {
    if (e->is_search || e->counter < 0 || !e->has(PTL_ME_EVENT_CT_COMM)) continue;
    if (!matches(program_, *e, m)) continue;
    uint64_t& success = most[static_cast<std::size_t>(e->counter)].success;
    success = std::max(success, success_of(e->has(PTL_ME_EVENT_CT_BYTES), m.length));
  }
  const auto found = std::find(descriptors_.begin(), descriptors_.end(), m.descriptor);
  if (found == descriptors_.end()) return;
  Count& count = most[portal_counters + static_cast<std::size_t>(found - descriptors_.begin())];
  const unsigned options = program_.descriptors[m.descriptor].options;
  const bool bytes = (options & PTL_MD_EVENT_CT_BYTES) != 0;
  if (m.kind != Kind::get && (options & PTL_MD_EVENT_CT_SEND) != 0)
    count.success += success_of(bytes, m.length);
  const unsigned end = replies(m.kind) ? PTL_MD_EVENT_CT_REPLY : PTL_MD_EVENT_CT_ACK;
  if ((options & end) == 0) return;
  count.success += success_of(bytes, std::max<uint64_t>(m.length, 1));
  ++count.failure;
}

// Each message to the portal may have left a header.
void CountBounds::add_list_call(Counts& most, const Element& element) const {
  const Entry& e = program_.entries[element.id];
  if (e.counter < 0 || !(e.is_search || e.has(PTL_ME_EVENT_CT_OVERFLOW))) return;
  Count& count = most[static_cast<std::size_t>(e.counter)];
  for (const Message* const m : messages_)
    if (matches(program_, e, *m))
      count.success += success_of(!e.is_search && e.has(PTL_ME_EVENT_CT_BYTES), m->length);
  if (e.is_search) ++count.failure;
}

std::string CountBounds::impossible(const State& state,
                                    const std::vector<std::size_t>& positions) const {
  for (std::size_t c = 0; c < portal_counters + descriptors_.size(); ++c) {
    Count to_come;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      to_come.success += to_come_[i][positions[i]][c].success;
      to_come.failure += to_come_[i][positions[i]][c].failure;
    }
    if (c < portal_counters) {
      if (!may_become(state.counts[c], to_come, history_.counts[c]))
        return "counter " + std::to_string(c) + " of the portal has another value";
    } else {
      const uint32_t descriptor = descriptors_[c - portal_counters];
      if (!may_become(count_of(state, descriptor), to_come, history_.descriptor_counts[descriptor]))
        return "the counter of descriptor " + std::to_string(descriptor) + " has another value";
    }
  }
  return "";
}

}  // namespace lintel::fuzz
