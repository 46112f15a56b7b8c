// PtlSetRank and its companions. Set-up path.
#include "groups.h"

using lintel::groups;

extern "C" {

int PtlSetJID(ptl_jid_t jid) noexcept { return groups().set_job(jid); }

int PtlGetJID(ptl_jid_t* jid) noexcept { return groups().get_job(jid); }

int PtlSetRank(ptl_handle_ni_t ni_handle, ptl_rid_t rank, unsigned group_size) noexcept {
  return groups().set_rank(ni_handle, rank, group_size);
}

int PtlSetNIDMap(ptl_handle_ni_t ni_handle, const ptl_nid_t* map, unsigned map_size) noexcept {
  return groups().set_nids(ni_handle, map, map_size);
}

int PtlSetPIDMap(ptl_handle_ni_t ni_handle, const ptl_pid_t* map, unsigned map_size) noexcept {
  return groups().set_pids(ni_handle, map, map_size);
}

int PtlGetRank(ptl_handle_ni_t ni_handle, ptl_rid_t* rank, unsigned* group_size) noexcept {
  return groups().get_rank(ni_handle, rank, group_size);
}

int PtlGetRankId(ptl_handle_ni_t ni_handle, ptl_rid_t rank, ptl_process_id_t* id) noexcept {
  return groups().get_id(ni_handle, rank, id);
}

}  // extern "C"
