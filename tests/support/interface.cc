// Opening interfaces in the ranks of a test; LE or ME from one description. Set-up path.
#include "support/interface.h"

#include <utility>

#include "support/device_view.h"
#include "support/text.h"

namespace lintel::test {

namespace {

constexpr int identifier_slot = 0;

}  // namespace

std::string InterfaceKind::name() const {
  return std::string(matching ? "matching" : "nonmatching") + (logical ? "_logical" : "_physical");
}

Interface::Interface(InterfaceKind kind, const Settings& settings, Place place) : kind_(kind) {
  open(settings, place);
}

Interface::Interface(Rank& rank, InterfaceKind kind, const Settings& settings, Place place)
    : kind_(kind) {
  rank.initialise(place);
  open(settings, place);
  exchange(rank, place);
}

Interface::Interface(Rank& rank, InterfaceKind kind, Place place)
    : Interface(rank, kind, Settings{}, place) {}

Interface::~Interface() {
  if (handle_ != PTL_INVALID_HANDLE) PtlNIFini(handle_);
}

Interface::Interface(Interface&& other) noexcept
    : kind_(other.kind_),
      handle_(std::exchange(other.handle_, PTL_INVALID_HANDLE)),
      limits_(other.limits_),
      physical_ids_(std::move(other.physical_ids_)) {}

void Interface::open(const Settings& settings, Place place) {
  must(PtlNIInit(settings.iface, kind_.options(), settings.pid, settings.desired, &limits_,
                 &handle_),
       place);
}

void Interface::exchange(Rank& rank, Place place) {
  ptl_process_t own{};
  must(PtlGetPhysId(handle_, &own), place);
  rank.publish(identifier_slot, own);
  rank.barrier(place);
  physical_ids_.clear();
  for (int other = 0; other < rank.count(); ++other)
    physical_ids_.push_back(rank.published<ptl_process_t>(other, identifier_slot));
  if (kind_.logical) must(PtlSetMap(handle_, physical_ids_.size(), physical_ids_.data()), place);
  rank.barrier(place);
}

ptl_process_t Interface::address(int rank) const {
  if (!kind_.logical) return physical_id(rank);
  ptl_process_t id{};
  id.rank = static_cast<ptl_rank_t>(rank);
  return id;
}

ptl_process_t Interface::physical_id(int rank) const {
  return physical_ids_.at(static_cast<std::size_t>(rank));
}

ptl_sr_value_t Interface::status(ptl_sr_index_t index, Place place) const {
  ptl_sr_value_t value = -1;
  must(PtlNIStatus(handle_, index, &value), place);
  return value;
}

bool Interface::same_process(ptl_process_t left, ptl_process_t right) const {
  if (kind_.logical) return left.rank == right.rank;
  return left.phys.nid == right.phys.nid && left.phys.pid == right.phys.pid;
}

namespace {

// What the entry names to Portals.
void* start_of(const EntrySpec& spec) {
  if ((spec.options & PTL_IOVEC) == 0) return behind_view(spec.start);
  name_devices(static_cast<const ptl_iovec_t*>(spec.start), spec.length);
  return spec.start;
}

}  // namespace

ptl_me_t Interface::match_entry(const EntrySpec& spec) const {
  ptl_me_t entry{};
  entry.start = start_of(spec);
  entry.length = spec.length;
  entry.ct_handle = spec.counter;
  entry.uid = spec.uid;
  entry.options = spec.options;
  entry.match_bits = spec.match_bits;
  entry.ignore_bits = spec.ignore_bits;
  entry.min_free = spec.min_free;
  if (spec.match_id != nullptr) {
    entry.match_id = *spec.match_id;
  } else if (kind_.logical) {
    entry.match_id.rank = PTL_RANK_ANY;
  } else {
    entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  }
  return entry;
}

int Interface::try_append(ptl_pt_index_t pt_index, const EntrySpec& spec, ptl_list_t list,
                          void* user_ptr, ptl_handle_any_t* handle) const {
  if (kind_.matching) {
    const ptl_me_t entry = match_entry(spec);
    return PtlMEAppend(handle_, pt_index, &entry, list, user_ptr, handle);
  }
  const ptl_le_t entry{start_of(spec), spec.length, spec.counter, spec.uid, spec.options};
  return PtlLEAppend(handle_, pt_index, &entry, list, user_ptr, handle);
}

ptl_handle_any_t Interface::append(ptl_pt_index_t pt_index, const EntrySpec& spec, ptl_list_t list,
                                   void* user_ptr, Place place) const {
  ptl_handle_any_t handle = PTL_INVALID_HANDLE;
  must(try_append(pt_index, spec, list, user_ptr, &handle), place);
  return handle;
}

int Interface::unlink(ptl_handle_any_t entry) const {
  return kind_.matching ? PtlMEUnlink(entry) : PtlLEUnlink(entry);
}

void Interface::unlink_when_idle(ptl_handle_any_t entry, Place place) const {
  Rank::current().await_condition(
      "unlinking an entry",
      [&] {
        const int code = unlink(entry);
        if (code != PTL_IN_USE) must(code, place);
        return code == PTL_OK;
      },
      place);
}

int Interface::search(ptl_pt_index_t pt_index, const EntrySpec& spec, ptl_search_op_t mode,
                      void* user_ptr) const {
  if (kind_.matching) {
    const ptl_me_t entry = match_entry(spec);
    return PtlMESearch(handle_, pt_index, &entry, mode, user_ptr);
  }
  const ptl_le_t entry{spec.start, spec.length, spec.counter, spec.uid, spec.options};
  return PtlLESearch(handle_, pt_index, &entry, mode, user_ptr);
}

void Interface::close() {
  must(PtlNIFini(handle_));
  handle_ = PTL_INVALID_HANDLE;
}

}  // namespace lintel::test
