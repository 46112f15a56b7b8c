// Generation of random programs. Set-up path.
#include "fuzz/program.h"

#include <algorithm>

#include "fuzz/trigger_plan.h"
#include "support/atomic_oracle.h"

namespace lintel::fuzz {

namespace {

using Random = std::mt19937;

Random random_for(uint64_t seed, uint64_t phase, uint64_t part) {
  std::seed_seq sequence{seed, seed >> 32, phase, part};
  return Random(sequence);
}

// Generates the steps of one thread. Draws from a separate stream of random numbers, so other
// threads have no influence.
class Author {
 public:
  Author(Program& program, uint64_t phase, int endpoint, int thread)
      : program_(program),
        random_(random_for(program.shape.seed, phase,
                           100 + static_cast<uint64_t>(endpoint * max_threads + thread))),
        endpoint_(endpoint),
        thread_(thread) {}

  void write() {
    for (int i = 0; i < descriptors_per_thread; ++i) draw_descriptor(i);
    std::vector<Step>& steps =
        program_.all_steps[static_cast<std::size_t>(endpoint_ * program_.shape.threads + thread_)];
    steps_ = &steps;
    while (static_cast<int>(steps.size()) < program_.shape.steps) draw_step();
    if (bundled_) add(Action::end_bundle);
    program_.final_counts[static_cast<std::size_t>(endpoint_ * program_.shape.threads + thread_)] =
        plan_.count();
  }

 private:
  [[nodiscard]] uint64_t below(uint64_t bound) {
    return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_);
  }
  [[nodiscard]] bool percent(uint64_t chance) { return below(100) < chance; }

  Step& add(Action action, uint32_t index = 0, uint64_t amount = 0) {
    return steps_->emplace_back(Step{action, index, amount, {}});
  }

  void draw_descriptor(int number) {
    Descriptor d;
    d.endpoint = endpoint_;
    d.thread = thread_;
    d.target = static_cast<int>(below(static_cast<uint64_t>(program_.shape.endpoints)));
    d.portal = static_cast<int>(below(portals));
    constexpr unsigned all_counts =
        PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        d.has_queue = true;
        if (percent(20)) d.options |= PTL_MD_EVENT_SEND_DISABLE;
        break;
      case 3:
        d.has_queue = d.has_counter = true;
        d.options |= static_cast<unsigned>(random_()) & (all_counts | PTL_MD_EVENT_SEND_DISABLE);
        break;
      case 4:
        d.has_counter = true;
        d.options |= percent(50) ? all_counts : static_cast<unsigned>(random_()) & all_counts;
        break;
      case 5:
        // Without counts, the end of such operations could not be detected.
        d.has_queue = d.has_counter = true;
        d.options |= PTL_MD_EVENT_SUCCESS_DISABLE | all_counts;
        break;
      case 6:
        d.has_queue = d.has_counter = true;
        d.options |= PTL_MD_EVENT_CT_BYTES | all_counts;
        break;
      default:
        break;
    }
    if (percent(20)) d.options |= PTL_MD_VOLATILE;
    if (percent(10)) d.options |= PTL_MD_UNORDERED;
    if (percent(6) && program_.shape.unreliable && !program_.portal(d.target, d.portal).cells)
      d.options |= PTL_MD_UNRELIABLE;
    const uint64_t bytes = thread_send_bytes / descriptors_per_thread;
    const uint64_t start =
        static_cast<uint64_t>(thread_) * thread_send_bytes + static_cast<uint64_t>(number) * bytes;
    d.memory.pieces = {{start, bytes}};
    if (percent(25)) {
      d.options |= PTL_IOVEC;
      cut(d.memory, 2 + below(6));
    }
    descriptors_[number] = static_cast<uint32_t>(program_.descriptors.size());
    program_.descriptors.push_back(d);
  }

  // Divides one range into pieces and changes their order.
  void cut(Layout& layout, uint64_t pieces) {
    const Layout::Piece whole = layout.pieces.front();
    std::vector<uint64_t> ends{whole.length};
    for (uint64_t i = 1; i < pieces; ++i) ends.push_back(below(whole.length + 1));
    std::sort(ends.begin(), ends.end());
    layout.pieces.clear();
    uint64_t at = 0;
    for (const uint64_t end : ends) {
      layout.pieces.push_back({whole.start + at, end - at});
      at = end;
    }
    std::shuffle(layout.pieces.begin(), layout.pieces.end(), random_);
  }

  [[nodiscard]] uint64_t draw_length(uint64_t limit) {
    uint64_t length = 0;
    switch (below(16)) {
      case 0:
        break;
      case 1:
      case 2:
        length = (percent(50) ? ordered_bytes : 2 * ordered_bytes) - 1 + below(3);
        break;
      case 3:
      case 4:
        length = 2 * ordered_bytes + 1 + below(30'000);
        break;
      case 5:
        length = percent(30) ? 300'000 : 60'000 + below(80'000);
        break;
      case 6:
      case 7:
        length = 200 + below(5000);
        break;
      default:
        length = 1 + below(percent(50) ? 16 : 200);
        break;
    }
    return std::min(length, limit);
  }

  void draw_message() {
    const int number = static_cast<int>(below(descriptors_per_thread));
    const uint32_t index = descriptors_[number];
    const Descriptor& d = program_.descriptors[index];
    const Portal& portal = program_.portal(d.target, d.portal);
    Message m;
    m.id = static_cast<uint32_t>(program_.messages.size());
    m.descriptor = index;
    m.endpoint = endpoint_;
    m.thread = thread_;
    m.target = d.target;
    m.portal = d.portal;
    m.tag = below(4);
    const bool lossy = (d.options & PTL_MD_UNRELIABLE) != 0;
    const uint64_t left = d.memory.length() - used_[number];
    if (portal.cells) {
      draw_atomic(m);
    } else {
      m.kind = !lossy && percent(30) ? Kind::get : Kind::put;
      m.length = draw_length(left / 2);
      if (m.kind == Kind::get && !program_.matching) {
        // On such interfaces only the length distinguishes the gets of an endpoint.
        m.length = (std::min<uint64_t>(m.length, left / 2 - 64) & ~uint64_t{63}) +
                   static_cast<uint64_t>(thread_ * 16 + gets_);
        if (++gets_ > 16) return;
      }
      const uint64_t choice = below(10);
      m.remote_offset = choice < 6 ? 0 : choice < 9 ? below(400) : below(20'000);
    }
    if (left < 2 * m.length + 64) return;
    m.source = used_[number];
    m.result = m.source + m.length;
    used_[number] += 2 * m.length;
    if (m.kind == Kind::put || m.kind == Kind::atomic) draw_acknowledgement(m, d);
    m.triggered = percent(12);
    if (m.triggered) {
      m.threshold = plan_.count() + below(6);
      m.starts = false;
    }
    program_.messages.push_back(m);
    Step& step = add(Action::send, m.id);
    if (m.triggered) note_fired(step, plan_.post({Fired::What::message, m.id, m.threshold, 0}));
  }

  void draw_atomic(Message& m) {
    const auto datatypes = test::all_datatypes();
    const auto operations = test::all_atomic_operations();
    const Kind kinds[] = {Kind::atomic, Kind::fetch_atomic, Kind::swap};
    const test::AtomicFunction functions[] = {test::AtomicFunction::atomic,
                                              test::AtomicFunction::fetch_atomic,
                                              test::AtomicFunction::swap};
    for (;;) {
      const uint64_t which = below(3);
      const test::Datatype& datatype = datatypes[below(datatypes.size())];
      const ptl_op_t operation = operations[below(operations.size())];
      // Sums and products of arbitrary items depend on how they are computed, and long double has
      // padding bytes.
      if (datatype.numbers != test::Numbers::integral) continue;
      if (operation == PTL_DIFF || !test::is_legal(functions[which], operation, datatype)) continue;
      m.kind = kinds[which];
      m.operation = operation;
      m.datatype = datatype.type;
      m.length = datatype.bytes;
      test::draw_item(random_, datatype, m.item.data());
      test::draw_item(random_, datatype, m.operand.data());
      break;
    }
    m.remote_offset = percent(90) ? m.length * below(cell_bytes / m.length) : below(80);
  }

  void draw_acknowledgement(Message& m, const Descriptor& d) {
    if ((d.options & PTL_MD_UNRELIABLE) != 0) return;
    m.ack = percent(70) ? PTL_ACK_REQ : PTL_NO_ACK_REQ;
    const bool counts = d.has_counter && (d.options & PTL_MD_EVENT_CT_ACK) != 0;
    if (d.has_queue && !counts) return;  // its arrival could not be detected
    if ((d.options & PTL_MD_EVENT_CT_BYTES) != 0) return;
    if (percent(40)) m.ack = percent(50) ? PTL_CT_ACK_REQ : PTL_OC_ACK_REQ;
  }

  void note_fired(Step& step, std::vector<Fired>&& fired) {
    for (const Fired& each : fired) {
      if (each.what == Fired::What::message) program_.messages[each.id].starts = true;
      if (each.what == Fired::What::append) program_.entries[each.id].starts = true;
    }
    step.fires = std::move(fired);
  }

  Entry draw_entry_of(int portal_index, bool is_search, bool catches_all) {
    const Portal& portal = program_.portal(endpoint_, portal_index);
    Entry e;
    e.id = static_cast<uint32_t>(program_.entries.size());
    e.endpoint = endpoint_;
    e.thread = thread_;
    e.portal = portal_index;
    e.is_search = is_search;
    e.search = percent(50) ? PTL_SEARCH_ONLY : PTL_SEARCH_DELETE;
    e.list = catches_all || (!is_search && percent(30)) ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST;
    // Entries of the overflow list would post events without reserved slots (spec 2.8).
    if (portal.tight) e.list = PTL_PRIORITY_LIST;
    const auto maybe = [&](unsigned option, uint64_t chance) {
      if (percent(chance)) e.options |= option;
    };
    maybe(PTL_ME_OP_PUT, 93);
    maybe(PTL_ME_OP_GET, 93);
    maybe(PTL_ME_USE_ONCE, catches_all ? 0 : 55);
    maybe(PTL_ME_UNEXPECTED_HDR_DISABLE, e.list == PTL_OVERFLOW_LIST ? 8 : 0);
    maybe(PTL_ME_IS_ACCESSIBLE, 20);
    maybe(PTL_ME_EVENT_LINK_DISABLE, 40);
    maybe(PTL_ME_EVENT_COMM_DISABLE, 7);
    maybe(PTL_ME_EVENT_FLOWCTRL_DISABLE, 10);
    maybe(PTL_ME_EVENT_SUCCESS_DISABLE, 6);
    maybe(PTL_ME_EVENT_OVER_DISABLE, 8);
    maybe(PTL_ME_EVENT_UNLINK_DISABLE, 20);
    if (percent(50)) {
      e.counter = static_cast<int>(below(portal_counters));
      maybe(PTL_ME_EVENT_CT_COMM, 70);
      maybe(PTL_ME_EVENT_CT_OVERFLOW, 50);
      maybe(PTL_ME_EVENT_CT_BYTES, 25);
    }
    uint64_t length = portal.cells && e.list == PTL_PRIORITY_LIST ? cell_bytes
                      : catches_all                               ? 150'000
                      : percent(35)                               ? below(200)
                                                                  : draw_length(200'000);
    if (program_.matching) {
      maybe(PTL_ME_MANAGE_LOCAL, catches_all ? 80 : 35);
      maybe(PTL_ME_NO_TRUNCATE, 12);
      if (e.has(PTL_ME_MANAGE_LOCAL)) {
        maybe(PTL_ME_MAY_ALIGN, 15);
        maybe(PTL_ME_LOCAL_INC_UH_RLENGTH, 20);
        if (percent(60)) e.min_free = below(length / 2 + 2);
        if (!e.has(PTL_ME_USE_ONCE) && percent(50)) length *= 2;
      }
      e.tag = below(4);
      const uint64_t choice = catches_all ? 0 : below(10);
      e.ignored_tags = choice < 3 ? 3 : choice < 5 ? 1 : 0;
      if (!catches_all && percent(15))
        e.source = static_cast<int>(below(static_cast<uint64_t>(program_.shape.endpoints)));
    }
    e.foreign = !catches_all && percent(3);
    if (portal.tight) {
      e.options |= PTL_ME_EVENT_LINK_DISABLE;
      if (is_search) e.options |= PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_OVER_DISABLE;
    }
    if (is_search) return e;
    length = std::min(length, thread_entry_bytes - entry_bytes_);
    if (portal.cells && e.list == PTL_PRIORITY_LIST && length < cell_bytes) length = 0;
    e.memory.pieces = {
        {static_cast<uint64_t>(thread_) * thread_entry_bytes + entry_bytes_, length}};
    entry_bytes_ += length;
    if (percent(20)) {
      e.options |= PTL_IOVEC;
      cut(e.memory, 1 + below(5));
    }
    return e;
  }

  void draw_entry(bool catches_all, int portal) {
    Entry e = draw_entry_of(portal, false, catches_all);
    e.triggered = program_.matching && !catches_all && percent(15);
    e.starts = !e.triggered;
    e.threshold = plan_.count() + below(6);
    program_.entries.push_back(e);
    appended_.push_back(e.id);
    Step& step = add(Action::append, e.id);
    if (e.triggered) note_fired(step, plan_.post({Fired::What::append, e.id, e.threshold, 0}));
  }

  void draw_unlink() {
    const std::size_t which = below(appended_.size());
    const uint32_t id = appended_[which];
    if (program_.matching && percent(20)) {
      const uint64_t threshold = plan_.count() + below(6);
      note_fired(add(Action::unlink_later, id, threshold),
                 plan_.post({Fired::What::unlink, id, threshold, 0}));
    } else if (program_.entries[id].starts) {
      add(Action::unlink, id);
    } else if (plan_.cancel_append(id)) {
      add(Action::cancel, id);
    }
  }

  void draw_counting() {
    const uint64_t threshold = plan_.count() + below(6);
    const uint64_t amount = 1 + below(3);
    const uint64_t value = below(plan_.count() + 3);
    const uint64_t choice = below(100);
    if (choice < 15) {
      note_fired(add(Action::count_later, static_cast<uint32_t>(threshold), amount),
                 plan_.post({Fired::What::count, 0, threshold, amount}));
    } else if (choice < 25) {
      note_fired(add(Action::set_later, static_cast<uint32_t>(threshold), value),
                 plan_.post({Fired::What::set, 0, threshold, value}));
    } else if (choice < 40) {
      note_fired(add(Action::set, 0, value), plan_.set(value));
    } else {
      note_fired(add(Action::count, 0, amount), plan_.add(amount));
    }
  }

  void draw_step() {
    const auto step = static_cast<int>(steps_->size());
    const auto some_portal = static_cast<int>(below(portals));
    if (step < portals && thread_ == 0 && percent(65)) return draw_entry(true, step);
    if (step == enable_at_) {
      add(Action::enable, static_cast<uint32_t>(disabled_portal_));
      return;
    }
    const uint64_t choice = below(100);
    if (choice < 50) {
      draw_message();
    } else if (choice < 72) {
      draw_entry(percent(10), some_portal);
    } else if (choice < 79) {
      if (!appended_.empty()) draw_unlink();
    } else if (choice < 85) {
      const Entry e = draw_entry_of(some_portal, true, false);
      program_.entries.push_back(e);
      add(Action::search, e.id);
    } else if (choice < 87) {
      if (enable_at_ > step) return;
      disabled_portal_ = some_portal;
      enable_at_ = step + 1 + static_cast<int>(below(4));
      add(Action::disable, static_cast<uint32_t>(some_portal));
    } else if (choice < 90) {
      add(Action::enable, static_cast<uint32_t>(some_portal));
    } else if (choice < 94) {
      draw_counting();
    } else if (choice < 97) {
      add(Action::drain, 0, 1 + below(12));
    } else if (choice < 98) {
      if (percent(40)) {
        add(Action::poll);
      } else if (percent(20)) {
        add(Action::sync);
      } else {
        add(Action::reuse,
            static_cast<uint32_t>(below(static_cast<uint64_t>(program_.shape.endpoints))),
            below(2));
      }
    } else {
      add(bundled_ ? Action::end_bundle : Action::begin_bundle);
      bundled_ = !bundled_;
    }
  }

  Program& program_;
  Random random_;
  int endpoint_;
  int thread_;
  std::vector<Step>* steps_ = nullptr;
  uint32_t descriptors_[descriptors_per_thread] = {};
  uint64_t used_[descriptors_per_thread] = {};
  uint64_t entry_bytes_ = 0;
  std::vector<uint32_t> appended_;
  TriggerPlan plan_;
  int gets_ = 0;
  int enable_at_ = -1;
  int disabled_portal_ = 0;
  bool bundled_ = false;
};

}  // namespace

Program::Program(const Shape& wanted, uint64_t phase) : shape(wanted) {
  Random random = random_for(shape.seed, phase, 0);
  const auto percent = [&](unsigned chance) { return random() % 100 < chance; };
  matching = percent(75);
  for (int i = 0; i < shape.endpoints * portals; ++i) {
    Portal portal;
    portal.has_queue = percent(95);
    portal.cells = percent(25);
    if (portal.has_queue && percent(35)) {
      portal.options |= PTL_PT_FLOWCTRL;
      portal.tight = percent(40);
      portal.room = random() % 16;
    }
    if (percent(5)) portal.options |= PTL_PT_ALLOC_DISABLED;
    all_portals.push_back(portal);
  }
  all_steps.resize(static_cast<std::size_t>(shape.endpoints * shape.threads));
  final_counts.resize(all_steps.size());
  for (int endpoint = 0; endpoint < shape.endpoints; ++endpoint)
    for (int thread = 0; thread < shape.threads; ++thread)
      Author(*this, phase, endpoint, thread).write();
  first_last_search = static_cast<uint32_t>(entries.size());
  for (int i = 0; i < shape.endpoints * portals; ++i) {
    Entry search;
    search.id = static_cast<uint32_t>(entries.size());
    search.endpoint = i / portals;
    search.portal = i % portals;
    search.ignored_tags = 3;
    search.is_search = true;
    search.search = PTL_SEARCH_DELETE;
    entries.push_back(search);
  }
}

}  // namespace lintel::fuzz
