#include "checker/graph.h"

#include <algorithm>

namespace lintel::model {

namespace {
bool acquires(Order order) noexcept {
  return order == Order::acquire || order == Order::acq_rel || order == Order::seq_cst;
}
bool releases(Order order) noexcept {
  return order == Order::release || order == Order::acq_rel || order == Order::seq_cst;
}
bool is_asymmetric(Order order) noexcept { return order == Order::light || order == Order::heavy; }
bool is_total(const Event& event) noexcept {
  return event.order == Order::seq_cst || is_asymmetric(event.order);
}
}  // namespace

void join(Clock& to, const Clock& other) noexcept {
  for (unsigned i = 0; i < most_threads; ++i) to[i] = std::max(to[i], other[i]);
}

unsigned Graph::place_of(const Event& event) const noexcept {
  if (event.kind == Kind::store) return event.place;
  return event.from == initial ? 0 : at(event.from).place;
}

EventId Graph::last_store(uint16_t location) const noexcept {
  EventId last = initial;
  for (size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[i];
    if (event.kind == Kind::store && event.location == location && !event.fulfils &&
        (last == initial || event.place > at(last).place))
      last = static_cast<EventId>(i);
  }
  return last;
}

const Event* Graph::last_of(unsigned thread) const noexcept {
  return threads_[thread].empty() ? nullptr : &at(threads_[thread].back());
}

void Graph::settle(Event& load, uint64_t value) noexcept {
  load.value = value;
  if (!load.exchanges) return;
  load.exclusive = load.exchange.always || value == load.exchange.expected;
  load.order = load.exclusive ? load.exchange.success : load.exchange.failure;
}

void Graph::compute_clocks(Event& event) const noexcept {
  const Event* const previous =
      event.index == 0 ? nullptr : &at(threads_[event.thread][event.index - 1u]);
  static const Event none{};
  const Event& base = previous != nullptr ? *previous : none;
  event.before = base.before;
  event.prefix = base.prefix;
  event.to_acquire = base.to_acquire;
  event.released = base.released;
  event.before[event.thread] = event.prefix[event.thread] = static_cast<uint8_t>(event.index + 1);
  switch (event.kind) {
    case Kind::load:
      if (event.from != initial) {
        const Event& store = at(event.from);
        join(event.prefix, store.prefix);
        // What the thread stored itself tells it nothing.
        const EventId own = store.thread == promised_thread ? fulfilment() : initial;
        if (own != initial && at(own).thread == event.thread) break;
        join(acquires(event.order) ? event.before : event.to_acquire, store.message);
      }
      break;
    case Kind::store:
      event.message = releases(event.order) ? event.before : base.released;
      // The release sequence goes on.
      if (event.exclusive && base.from != initial) join(event.message, at(base.from).message);
      break;
    case Kind::fence:
      if (acquires(event.order)) join(event.before, event.to_acquire);
      if (releases(event.order)) event.released = event.before;
      break;
  }
}

EventId Graph::add(Event event) noexcept {
  event.index = static_cast<uint8_t>(threads_[event.thread].size());
  compute_clocks(event);
  const auto id = static_cast<EventId>(events_.size());
  events_.push_back(event);
  threads_[event.thread].push_back(id);
  return id;
}

void Graph::add_store(Event event, unsigned place) noexcept {
  for (Event& other : events_)
    if (other.kind == Kind::store && other.location == event.location && other.place >= place)
      ++other.place;
  event.place = static_cast<uint8_t>(place);
  add(event);
}

void Graph::promise(Event store, unsigned place, uint8_t promiser) noexcept {
  promiser_ = promiser;
  store.thread = promised_thread;
  store.order = Order::release;  // so that clocks tell who acquired it
  add_store(store, place);
}

bool Graph::fulfil(Event store) noexcept {
  if (!has_promise() || store.thread != promiser_ || fulfilment() != initial) return false;
  const EventId id = id_of(promised_thread, 0);
  const Event& promised = at(id);
  const Event* const previous = last_of(store.thread);
  if (previous == nullptr || store.location != promised.location || store.value != promised.value ||
      (store.exclusive && place_of(*previous) + 1 != promised.place))
    return false;
  // Whether a load of the promise is among the causes.
  const auto is_cause = [&](const Clock& causes) {
    return std::ranges::any_of(events_, [&](const Event& load) {
      return load.kind == Kind::load && load.from == id && load.index < causes[load.thread];
    });
  };
  const bool is_ordered = std::ranges::any_of(threads_[store.thread], [&](EventId other) {
    const Event& event = at(other);
    if (event.kind == Kind::store || !acquires(event.order)) return false;
    if (event.kind == Kind::fence) return is_cause(event.prefix);
    return event.from != initial && is_cause(at(event.from).prefix);
  });
  if (is_ordered || !is_cause(previous->prefix) ||
      view(store.thread, length(store.thread), store.location) >= promised.place)
    return false;
  store.fulfils = true;
  store.place = promised.place;
  add(store);
  return has_total_order();
}

EventId Graph::fulfilment() const noexcept {
  const auto found = std::ranges::find_if(events_, &Event::fulfils);
  return found == events_.end() ? initial : static_cast<EventId>(found - events_.begin());
}

bool Graph::is_promise_kept() const noexcept {
  const EventId store = fulfilment();
  if (store == initial) return false;
  return at(store).message == Clock{} || std::ranges::none_of(events_, [](const Event& event) {
           return event.thread != promised_thread && event.before[promised_thread] != 0;
         });
}

unsigned Graph::view(unsigned thread, unsigned length, uint16_t location) const noexcept {
  if (length == 0) return 0;
  const Clock& before = at(threads_[thread][length - 1]).before;
  unsigned latest = 0;
  for (const Event& event : events_)
    if (event.kind != Kind::fence && event.location == location &&
        event.index < before[event.thread])
      latest = std::max(latest, place_of(event));
  return latest;
}

std::vector<EventId> Graph::sources(const Event& load) const {
  const unsigned least = view(load.thread, length(load.thread), load.location);
  std::vector<EventId> found;
  for (size_t i = 0; i < events_.size(); ++i)
    if (events_[i].kind == Kind::store && events_[i].location == load.location &&
        events_[i].place >= least && !events_[i].fulfils)
      found.push_back(static_cast<EventId>(i));
  std::sort(found.begin(), found.end(),
            [this](EventId a, EventId b) { return at(a).place > at(b).place; });
  if (least == 0) found.push_back(initial);
  return found;
}

std::vector<unsigned> Graph::places(const Event& store) const {
  const unsigned count = length(store.thread);
  unsigned first = view(store.thread, count, store.location) + 1;
  const EventId newest = last_store(store.location);
  unsigned last = (newest == initial ? 0u : at(newest).place) + 1u;
  if (store.exclusive) first = last = place_of(at(threads_[store.thread].back())) + 1;
  // Between a read-modify-write operation and the store that it read there is no other.
  std::array<bool, 256> taken{};
  for (const Event& event : events_)
    if (event.kind == Kind::store && event.location == store.location && event.exclusive)
      taken[event.place] = true;
  std::vector<unsigned> found;
  for (unsigned place = last; place >= first; --place)
    if (!taken[place]) found.push_back(place);
  return found;
}

bool Graph::was_added_last(EventId event, const Clock& prefix) const noexcept {
  const Event& of = at(event);
  if (of.kind == Kind::fence) return true;
  // These never had to be added.
  if (of.fulfils || of.thread == promised_thread) return false;
  const unsigned place = place_of(of);
  for (size_t i = 0; i < events_.size(); ++i) {
    const Event& other = events_[i];
    const bool previous = static_cast<EventId>(i) <= event || other.index < prefix[other.thread];
    if (!previous || other.kind == Kind::fence || other.location != of.location) continue;
    if (other.kind == Kind::store ? other.place > place
                                  : of.kind == Kind::store && other.from == event)
      return false;
  }
  return true;
}

std::optional<Graph> Graph::without_followers(EventId load, const Event& store) const {
  Clock prefix{};
  if (const Event* previous = last_of(store.thread)) prefix = previous->prefix;
  const auto is_prefix = [&](const Event& event) { return event.index < prefix[event.thread]; };
  if (is_prefix(at(load)) || !was_added_last(load, prefix)) return std::nullopt;
  std::vector<EventId> renamed(events_.size(), initial);
  EventId kept = 0;
  for (size_t i = 0; i < events_.size(); ++i) {
    const auto id = static_cast<EventId>(i);
    if (id <= load || is_prefix(events_[i])) {
      renamed[i] = kept++;
    } else if (!was_added_last(id, prefix)) {
      return std::nullopt;
    }
  }
  Graph graph;
  graph.promiser_ = promiser_;
  for (size_t i = 0; i < events_.size(); ++i) {
    if (renamed[i] == initial) continue;
    Event event = events_[i];
    if (event.kind == Kind::load && event.from != initial)
      event.from = renamed[static_cast<size_t>(event.from)];
    if (event.kind == Kind::store) {  // places without gaps
      for (size_t j = 0; j < events_.size(); ++j)
        if (renamed[j] == initial && events_[j].kind == Kind::store &&
            events_[j].location == event.location && events_[j].place < events_[i].place)
          --event.place;
    }
    // A store may come after its load here.
    auto& thread = graph.threads_[event.thread];
    if (thread.size() <= event.index) thread.resize(event.index + size_t{1}, initial);
    thread[event.index] = renamed[i];
    graph.events_.push_back(event);
  }
  return graph;
}

bool Graph::redirect(EventId load) {
  Event& event = events_[static_cast<size_t>(load)];
  event.from = static_cast<EventId>(events_.size() - 1);
  settle(event, at(event.from).value & event.mask);
  compute_clocks(event);
  return place_of(event) >= view(event.thread, event.index, event.location) && is_acyclic();
}

void Graph::remove_last() noexcept {
  threads_[events_.back().thread].pop_back();
  events_.pop_back();
}

// Not if it does not follow any fence or seq_cst operation.
bool Graph::may_close_cycle(const Event& event) const noexcept {
  if (event.order == Order::seq_cst) return true;
  for (const Event& other : events_)
    if (is_total(other) && other.index < event.before[other.thread]) return true;
  return false;
}

// RC11: psc is acyclic. Between fences it is happens-before and coherence, also through other
// events; with seq_cst accesses at the ends, only the parts that follow.
bool Graph::is_acyclic() const {
  std::array<const Event*, 64> nodes;
  size_t count = 0;
  bool asymmetric = false;
  for (const Event& event : events_) asymmetric |= event.order == Order::heavy;
  for (const Event& event : events_)
    if (is_total(event) && (event.order != Order::light || asymmetric) && count < nodes.size())
      nodes[count++] = &event;
  if (count < 2) return true;

  const auto before = [](const Event& a, const Event& b) {
    return &a != &b && a.index < b.before[a.thread];
  };
  // Modification order, reads-before and, with the loads at both ends, what these imply.
  const auto coheres = [this](const Event& a, const Event& b) {
    if (a.kind == Kind::fence || b.kind == Kind::fence || a.location != b.location || &a == &b)
      return false;
    const unsigned from = place_of(a);
    const unsigned to = place_of(b);
    return from < to || (from == to && a.kind == Kind::store && b.kind == Kind::load);
  };
  const auto other_location = [](const Event& a, const Event& b) {
    return a.kind == Kind::fence || b.kind == Kind::fence || a.location != b.location;
  };
  const auto scb = [&](const Event& a, const Event& b) {
    if (a.thread == b.thread) return a.index < b.index;
    if (!other_location(a, b)) {
      if (before(a, b)) return true;
      if (b.kind == Kind::store && coheres(a, b)) return true;
      return false;
    }
    // Program order, happens-before, program order, with other locations in between.
    const auto& first = threads_[a.thread];
    const auto& last = threads_[b.thread];
    for (size_t i = a.index + size_t{1}; i < first.size(); ++i) {
      const Event& next = at(first[i]);
      if (!other_location(a, next)) continue;
      for (size_t j = b.index; j-- > 0;) {
        const Event& previous = at(last[j]);
        if (other_location(previous, b)) return before(next, previous);
      }
      return false;
    }
    return false;
  };

  // Of a fence, per location: the earliest store and load that follow it, the latest before it.
  size_t locations = 0;
  for (const Event& event : events_)
    if (event.kind != Kind::fence) locations = std::max(locations, event.location + size_t{1});
  constexpr uint8_t never = 255;
  std::vector<std::array<uint8_t, 4>> reach(count * locations, {never, never, 0, 0});
  for (size_t i = 0; i < count; ++i) {
    const Event& fence = *nodes[i];
    if (fence.kind != Kind::fence) continue;
    for (const Event& event : events_) {
      if (event.kind == Kind::fence) continue;
      auto& of = reach[i * locations + event.location];
      const size_t load = event.kind == Kind::load ? 1 : 0;
      const auto place = static_cast<uint8_t>(place_of(event) + 1);
      if (before(fence, event)) of[load] = std::min(of[load], place);
      if (before(event, fence)) of[2 + load] = std::max(of[2 + load], place);
    }
  }

  const auto has_edge = [&](size_t i, size_t j) {
    const Event& a = *nodes[i];
    const Event& b = *nodes[j];
    if (a.order == Order::light && b.order != Order::heavy) return false;
    if (b.order == Order::light && a.order != Order::heavy) return false;
    const bool from_fence = a.kind == Kind::fence;
    const bool to_fence = b.kind == Kind::fence;
    if (!from_fence && !to_fence) return scb(a, b);
    if (from_fence && to_fence) {
      if (before(a, b)) return true;
      for (size_t of = 0; of < locations; ++of) {
        const auto& x = reach[i * locations + of];
        const auto& y = reach[j * locations + of];
        if (x[0] < y[2] || x[0] <= y[3] || x[1] < y[2] || x[1] < y[3]) return true;
      }
      return false;
    }
    if (scb(a, b)) return true;
    for (const Event& event : events_) {
      if (from_fence && before(a, event) && scb(event, b)) return true;
      if (to_fence && before(event, b) && scb(a, event)) return true;
    }
    return false;
  };
  std::array<uint64_t, 64> successors{};
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < count; ++j)
      if (i != j && has_edge(i, j)) successors[i] |= uint64_t{1} << j;
  // Nodes without successors are removed until there are none.
  uint64_t left = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  for (bool removed = true; removed;) {
    removed = false;
    for (size_t i = 0; i < count; ++i) {
      if ((left >> i & 1) == 0 || (successors[i] & left) != 0) continue;
      left &= ~(uint64_t{1} << i);
      removed = true;
    }
  }
  return left == 0;
}

}  // namespace lintel::model
