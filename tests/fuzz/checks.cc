// Checks of the order of events and of the contents of memory. Set-up path.
#include "fuzz/checks.h"

#include <algorithm>
#include <map>

#include "fuzz/kinds.h"
#include "fuzz/matching_rules.h"
#include "support/text.h"

namespace lintel::fuzz {

namespace {

bool is_arrival(const ptl_event_t& event) {
  return event.type == PTL_EVENT_PUT || event.type == PTL_EVENT_GET ||
         event.type == PTL_EVENT_ATOMIC || event.type == PTL_EVENT_FETCH_ATOMIC;
}

bool overlap(const Delivery& left, const Delivery& right) {
  return left.offset < right.offset + right.mlength && right.offset < left.offset + left.mlength;
}

}  // namespace

void check_order_of_events(const PortalHistory& history, std::vector<std::string>& problems) {
  const std::vector<Taken>& log = *history.log;
  std::map<uint64_t, ptl_event_kind_t> ended;  // by user_ptr
  for (const Taken& taken : log) {
    const uint64_t user = user_number(taken.event);
    if (taken.event.type == PTL_EVENT_PT_DISABLED) continue;
    const auto found = ended.find(user);
    if (found != ended.end() &&
        !(found->second == PTL_EVENT_AUTO_UNLINK && taken.event.type == PTL_EVENT_AUTO_FREE))
      problems.push_back("after the last event of its entry: " + test::describe(taken.event));
    if (taken.event.type == PTL_EVENT_AUTO_UNLINK || taken.event.type == PTL_EVENT_AUTO_FREE)
      ended[user] = taken.event.type;
  }
  std::vector<const Element*> enables;
  for (const auto& sequence : history.sequences)
    for (const Element& element : sequence)
      if (element.action == Action::enable) enables.push_back(&element);
  for (const auto& sequence : history.sequences) {
    for (const Element& element : sequence) {
      if (element.action == Action::unlink && element.call->code == PTL_OK) {
        for (std::size_t i = element.call->log_end; i < log.size(); ++i)
          if (log[i].event.type != PTL_EVENT_PT_DISABLED &&
              user_number(log[i].event) == entry_user_base + element.id)
            problems.push_back("after its entry was unlinked: " + test::describe(log[i].event));
      } else if (element.action == Action::disable) {
        // The time at which another thread may have enabled it again.
        uint64_t until = never;
        for (const Element* enable : enables)
          if (enable->end_ns > element.begin_ns) until = std::min(until, enable->begin_ns);
        for (std::size_t i = element.call->log_end; i < log.size() && log[i].taken_ns < until; ++i)
          if (is_arrival(log[i].event))
            problems.push_back("after PtlPTDisable returned: " + test::describe(log[i].event));
      }
    }
  }
}

void check_releases(const PortalHistory& history, const Evidence& evidence, const State& last,
                    std::vector<std::string>& problems) {
  const std::vector<Taken>& log = *history.log;
  std::map<uint32_t, std::size_t> freed;  // position of the event, by entry
  for (std::size_t i = 0; i < log.size(); ++i)
    if (log[i].event.type == PTL_EVENT_AUTO_FREE)
      freed[static_cast<uint32_t>(user_number(log[i].event) - entry_user_base)] = i;
  if (freed.empty()) return;
  std::map<uint32_t, uint32_t> entry_of;
  for (const Delivery& delivery : last.deliveries)
    if (is_placed(history.program->entries[delivery.entry], delivery.offset))
      entry_of[delivery.message] = delivery.entry;
  for (std::size_t i = 0; i < log.size(); ++i) {
    const ptl_event_t& event = log[i].event;
    // The event of a search without a match does not name a message (spec 3.13.1).
    if (event.ni_fail_type == PTL_NI_NO_MATCH) continue;
    const Message* const message = evidence.message_of(event);
    if (message == nullptr || entry_of.count(message->id) == 0) continue;
    const auto found = freed.find(entry_of.at(message->id));
    if (found != freed.end() && found->second < i)
      problems.push_back("after PTL_EVENT_AUTO_FREE of the buffer of its message: " +
                         test::describe(event));
  }
}

void check_memory(const PortalHistory& history, const State& last,
                  std::vector<std::string>& problems) {
  const Program& program = *history.program;
  const Portal& portal = program.portal(history.endpoint, history.portal);
  std::map<uint32_t, std::vector<const Delivery*>> by_entry;
  for (const Delivery& delivery : last.deliveries) by_entry[delivery.entry].push_back(&delivery);
  for (const auto& [id, live] : last.entries) {
    if (!live.cells.empty()) continue;  // the model compares these
    const Entry& entry = program.entries[id];
    const uint64_t length = entry.memory.length();
    std::vector<const Delivery*> writers;
    for (const Delivery* delivery : by_entry[id])
      if (delivery->mlength != 0 && stores(program.messages[delivery->message], entry, portal))
        writers.push_back(delivery);
    std::vector<std::byte> content(length);
    std::vector<std::byte> before(length);
    entry.memory.for_each(0, length, [&](uint64_t start, uint64_t bytes, uint64_t done) {
      for (uint64_t i = 0; i < bytes; ++i) {
        content[done + i] = history.memory[start + i];
        before[done + i] = background_at(history.endpoint, start + i);
      }
    });
    std::vector<char> covered(length);
    std::vector<char> explained(length);
    for (std::size_t w = 0; w < writers.size(); ++w) {
      const Delivery& writer = *writers[w];
      const Message& message = program.messages[writer.message];
      // Later short data of the same thread overwrite earlier ones (spec 2.7.1).
      std::vector<const Delivery*> over;
      for (std::size_t later = w + 1; later < writers.size(); ++later) {
        const Message& other = program.messages[writers[later]->message];
        const unsigned options = program.descriptors[message.descriptor].options |
                                 program.descriptors[other.descriptor].options;
        if (overlap(writer, *writers[later]) && other.endpoint == message.endpoint &&
            other.thread == message.thread && other.triggered == message.triggered &&
            std::max(message.length, other.length) < ordered_bytes &&
            (options & (PTL_MD_UNORDERED | PTL_MD_UNRELIABLE)) == 0)
          over.push_back(writers[later]);
      }
      for (uint64_t i = 0; i < writer.mlength; ++i) {
        const uint64_t at = writer.offset + i;
        covered[at] = 1;
        if (content[at] != data_at(message, i)) continue;
        const bool hidden = std::any_of(over.begin(), over.end(), [&](const Delivery* delivery) {
          return at - delivery->offset < delivery->mlength;
        });
        if (!hidden) explained[at] = 1;
      }
    }
    uint64_t wrong = 0;
    uint64_t first = 0;
    for (uint64_t i = 0; i < length; ++i) {
      if (covered[i] != 0 ? explained[i] != 0 : content[i] == before[i]) continue;
      if (wrong++ == 0) first = i;
    }
    if (wrong != 0)
      problems.push_back(std::to_string(wrong) + " bytes of entry " + std::to_string(id) +
                         " are wrong, from " + std::to_string(first) + " on (of " +
                         std::to_string(length) + ", " + std::to_string(writers.size()) +
                         " messages there" +
                         (covered[first] != 0 ? ")" : "; none of them at that place)"));
    for (const Delivery* delivery : by_entry[id]) {
      const Message& message = program.messages[delivery->message];
      const MessageSeen& seen = history.messages[delivery->message];
      if (message.kind != Kind::get || seen.ends == 0 || seen.result_hash == 0) continue;
      if (std::any_of(writers.begin(), writers.end(),
                      [&](const Delivery* writer) { return overlap(*writer, *delivery); }))
        continue;
      const uint64_t expected =
          hash_of(entry.memory, delivery->offset, delivery->mlength,
                  [&](uint64_t at) { return background_at(history.endpoint, at); });
      if (seen.result_hash != expected)
        problems.push_back("get " + std::to_string(message.id) +
                           " brought other bytes than entry " + std::to_string(id) + " has");
    }
  }
}

}  // namespace lintel::fuzz
