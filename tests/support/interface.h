// A logical network interface of a rank, and entries posted to it without regard to its kind.
#pragma once

#include <portals4.h>

#include <string>
#include <vector>

#include "support/rank.h"
#include "support/text.h"

namespace lintel::test {

struct InterfaceKind {
  bool matching = true;
  bool logical = false;

  [[nodiscard]] unsigned options() const {
    return (matching ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING) |
           (logical ? PTL_NI_LOGICAL : PTL_NI_PHYSICAL);
  }
  [[nodiscard]] std::string name() const;
};

inline constexpr InterfaceKind matching_physical{true, false};
inline constexpr InterfaceKind matching_logical{true, true};
inline constexpr InterfaceKind nonmatching_physical{false, false};
inline constexpr InterfaceKind nonmatching_logical{false, true};
inline constexpr InterfaceKind all_interface_kinds[] = {matching_physical, matching_logical,
                                                        nonmatching_physical, nonmatching_logical};

// Describes a list entry or a match list entry; only the latter uses the last four fields.
struct EntrySpec {
  void* start = nullptr;
  ptl_size_t length = 0;
  unsigned options = 0;
  ptl_handle_ct_t counter = PTL_CT_NONE;
  ptl_uid_t uid = PTL_UID_ANY;
  ptl_match_bits_t match_bits = 0;
  ptl_match_bits_t ignore_bits = 0;
  ptl_size_t min_free = 0;
  const ptl_process_t* match_id = nullptr;  // nullptr: any process
};

class Interface {
 public:
  struct Settings {
    ptl_pid_t pid = PTL_PID_ANY;
    const ptl_ni_limits_t* desired = nullptr;
    ptl_interface_t iface = PTL_IFACE_DEFAULT;
  };

  // Opens the interface (the caller has initialised the rank) and publishes nothing.
  Interface(InterfaceKind kind, const Settings& settings, Place place = Place::current());
  // Opens it in all ranks, exchanges their identifiers and, if logical, sets the map: rank i of the
  // test is rank i of the interface.
  Interface(Rank& rank, InterfaceKind kind, const Settings& settings,
            Place place = Place::current());
  Interface(Rank& rank, InterfaceKind kind, Place place = Place::current());
  ~Interface();
  Interface(Interface&& other) noexcept;
  Interface& operator=(Interface&&) = delete;

  void exchange(Rank& rank, Place place = Place::current());

  [[nodiscard]] ptl_handle_ni_t handle() const noexcept { return handle_; }
  [[nodiscard]] const ptl_ni_limits_t& limits() const noexcept { return limits_; }
  [[nodiscard]] InterfaceKind kind() const noexcept { return kind_; }
  // The address of a rank on this interface, for operations and match_id.
  [[nodiscard]] ptl_process_t address(int rank) const;
  [[nodiscard]] ptl_process_t physical_id(int rank) const;
  [[nodiscard]] ptl_sr_value_t status(ptl_sr_index_t index, Place place = Place::current()) const;
  [[nodiscard]] bool same_process(ptl_process_t left, ptl_process_t right) const;

  // A portal table entry; returns its index.
  ptl_pt_index_t allocate(ptl_pt_index_t wanted, ptl_handle_eq_t events = PTL_EQ_NONE,
                          unsigned options = 0, Place place = Place::current()) const {
    ptl_pt_index_t index = PTL_PT_ANY;
    must(PtlPTAlloc(handle_, options, events, wanted, &index), place);
    return index;
  }
  [[nodiscard]] int try_append(ptl_pt_index_t pt_index, const EntrySpec& spec, ptl_list_t list,
                               void* user_ptr, ptl_handle_any_t* handle) const;
  ptl_handle_any_t append(ptl_pt_index_t pt_index, const EntrySpec& spec,
                          ptl_list_t list = PTL_PRIORITY_LIST, void* user_ptr = nullptr,
                          Place place = Place::current()) const;
  [[nodiscard]] int unlink(ptl_handle_any_t entry) const;
  // Unlinks, and repeats that while operations are in progress on the entry.
  void unlink_when_idle(ptl_handle_any_t entry, Place place = Place::current()) const;
  [[nodiscard]] int search(ptl_pt_index_t pt_index, const EntrySpec& spec, ptl_search_op_t mode,
                           void* user_ptr) const;

  void close();  // PtlNIFini now, not in the destructor

 private:
  void open(const Settings& settings, Place place);
  [[nodiscard]] ptl_me_t match_entry(const EntrySpec& spec) const;

  InterfaceKind kind_;
  ptl_handle_ni_t handle_ = PTL_INVALID_HANDLE;
  ptl_ni_limits_t limits_{};
  std::vector<ptl_process_t> physical_ids_;
};

// A user_ptr that carries a number, and back.
[[nodiscard]] inline void* tag(uintptr_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
}
[[nodiscard]] inline uintptr_t tag_of(const void* user_ptr) {
  return reinterpret_cast<uintptr_t>(user_ptr);
}

}  // namespace lintel::test
