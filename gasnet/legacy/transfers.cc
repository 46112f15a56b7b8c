/* transfers.cc: puts, gets and their completion with the calls of GASNet-1. Message path.
 *
 * Calls without "bulk" return when the source may be changed, the others when they have started.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>

#include <algorithm>
#include <cstring>

/** The value of a get. */
struct gasneti_value_get {
  gex_RMA_Value_t value;
  gex_Event_t event;
  gasneti_value_get* next; /* link of the list of free ones */
};

namespace {

gex_TM_t team() { return gasneti_legacy_team(); }

/* The thread that holds a handle waits for it. */
#ifdef GASNET_SEQ
gasneti_value_get* g_free = nullptr;
#else
thread_local gasneti_value_get* g_free = nullptr;
#endif

constexpr size_t kFillBytes = 4096;

int after_polling(int (*test)(gex_Event_t*, size_t, gex_Flags_t), gasnet_handle_t* handles,
                  size_t count) {
  gasnet_AMPoll();
  return test(handles, count, 0);
}

int implicit_after_polling(gex_EC_t category) {
  gasnet_AMPoll();
  return gex_NBI_Test(category, 0);
}

}  // namespace

void gasnet_put(gasnet_node_t node, void* dest, void* src, size_t nbytes) {
  gex_RMA_PutBlocking(team(), node, dest, src, nbytes, 0);
}
void gasnet_put_bulk(gasnet_node_t node, void* dest, void* src, size_t nbytes) {
  gex_RMA_PutBlocking(team(), node, dest, src, nbytes, 0);
}
gasnet_handle_t gasnet_put_nb(gasnet_node_t node, void* dest, void* src, size_t nbytes) {
  return gex_RMA_PutNB(team(), node, dest, src, nbytes, GEX_EVENT_NOW, 0);
}
gasnet_handle_t gasnet_put_nb_bulk(gasnet_node_t node, void* dest, void* src, size_t nbytes) {
  return gex_RMA_PutNB(team(), node, dest, src, nbytes, GEX_EVENT_DEFER, 0);
}
void gasnet_put_nbi(gasnet_node_t node, void* dest, void* src, size_t nbytes) {
  gex_RMA_PutNBI(team(), node, dest, src, nbytes, GEX_EVENT_NOW, 0);
}
void gasnet_put_nbi_bulk(gasnet_node_t node, void* dest, void* src, size_t nbytes) {
  gex_RMA_PutNBI(team(), node, dest, src, nbytes, GEX_EVENT_DEFER, 0);
}
void gasnet_get(void* dest, gasnet_node_t node, void* src, size_t nbytes) {
  gex_RMA_GetBlocking(team(), dest, node, src, nbytes, 0);
}
void gasnet_get_bulk(void* dest, gasnet_node_t node, void* src, size_t nbytes) {
  gex_RMA_GetBlocking(team(), dest, node, src, nbytes, 0);
}
gasnet_handle_t gasnet_get_nb(void* dest, gasnet_node_t node, void* src, size_t nbytes) {
  return gex_RMA_GetNB(team(), dest, node, src, nbytes, 0);
}
gasnet_handle_t gasnet_get_nb_bulk(void* dest, gasnet_node_t node, void* src, size_t nbytes) {
  return gex_RMA_GetNB(team(), dest, node, src, nbytes, 0);
}
void gasnet_get_nbi(void* dest, gasnet_node_t node, void* src, size_t nbytes) {
  gex_RMA_GetNBI(team(), dest, node, src, nbytes, 0);
}
void gasnet_get_nbi_bulk(void* dest, gasnet_node_t node, void* src, size_t nbytes) {
  gex_RMA_GetNBI(team(), dest, node, src, nbytes, 0);
}

void gasnet_memset(gasnet_node_t node, void* dest, int val, size_t nbytes) {
  char bytes[kFillBytes];
  std::memset(bytes, val, std::min(nbytes, sizeof bytes));
  for (size_t done = 0; done < nbytes; done += sizeof bytes)
    gex_RMA_PutBlocking(team(), node, static_cast<char*>(dest) + done, bytes,
                        std::min(nbytes - done, sizeof bytes), 0);
}
gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void* dest, int val, size_t nbytes) {
  gasnet_memset(node, dest, val, nbytes);
  return GASNET_INVALID_HANDLE;
}
void gasnet_memset_nbi(gasnet_node_t node, void* dest, int val, size_t nbytes) {
  gasnet_memset(node, dest, val, nbytes);
}

void gasnet_put_val(gasnet_node_t node, void* dest, gasnet_register_value_t value, size_t nbytes) {
  gex_RMA_PutBlockingVal(team(), node, dest, value, nbytes, 0);
}
gasnet_handle_t gasnet_put_nb_val(gasnet_node_t node, void* dest, gasnet_register_value_t value,
                                  size_t nbytes) {
  return gex_RMA_PutNBVal(team(), node, dest, value, nbytes, 0);
}
void gasnet_put_nbi_val(gasnet_node_t node, void* dest, gasnet_register_value_t value,
                        size_t nbytes) {
  gex_RMA_PutNBIVal(team(), node, dest, value, nbytes, 0);
}
gasnet_register_value_t gasnet_get_val(gasnet_node_t node, void* src, size_t nbytes) {
  return gex_RMA_GetBlockingVal(team(), node, src, nbytes, 0);
}
gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void* src, size_t nbytes) {
  gasneti_value_get* handle = g_free;
  if (handle)
    g_free = handle->next;
  else
    handle = new gasneti_value_get;
  handle->value = 0;
#ifdef PLATFORM_ARCH_LITTLE_ENDIAN
  void* const place = &handle->value;
#else
  void* const place = reinterpret_cast<char*>(&handle->value) + (sizeof handle->value - nbytes);
#endif
  handle->event = gex_RMA_GetNB(team(), place, node, src, nbytes, 0);
  return handle;
}
gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle) {
  gex_Event_Wait(handle->event);
  handle->next = g_free;
  g_free = handle;
  return handle->value;
}

void gasnet_wait_syncnb(gasnet_handle_t handle) { gex_Event_Wait(handle); }
void gasnet_wait_syncnb_some(gasnet_handle_t* phandle, size_t numhandles) {
  gex_Event_WaitSome(phandle, numhandles, 0);
}
void gasnet_wait_syncnb_all(gasnet_handle_t* phandle, size_t numhandles) {
  gex_Event_WaitAll(phandle, numhandles, 0);
}
int gasnet_try_syncnb(gasnet_handle_t handle) {
  gasnet_AMPoll();
  return gex_Event_Test(handle);
}
int gasnet_try_syncnb_some(gasnet_handle_t* phandle, size_t numhandles) {
  return after_polling(gex_Event_TestSome, phandle, numhandles);
}
int gasnet_try_syncnb_all(gasnet_handle_t* phandle, size_t numhandles) {
  return after_polling(gex_Event_TestAll, phandle, numhandles);
}
int gasnet_try_syncnb_nopoll(gasnet_handle_t handle) { return gex_Event_Test(handle); }
int gasnet_try_syncnb_some_nopoll(gasnet_handle_t* phandle, size_t numhandles) {
  return gex_Event_TestSome(phandle, numhandles, 0);
}
int gasnet_try_syncnb_all_nopoll(gasnet_handle_t* phandle, size_t numhandles) {
  return gex_Event_TestAll(phandle, numhandles, 0);
}

void gasnet_wait_syncnbi_gets() { gex_NBI_Wait(GEX_EC_GET, 0); }
void gasnet_wait_syncnbi_puts() { gex_NBI_Wait(GEX_EC_PUT, 0); }
void gasnet_wait_syncnbi_all() { gex_NBI_Wait(GEX_EC_GET | GEX_EC_PUT, 0); }
int gasnet_try_syncnbi_gets() { return implicit_after_polling(GEX_EC_GET); }
int gasnet_try_syncnbi_puts() { return implicit_after_polling(GEX_EC_PUT); }
int gasnet_try_syncnbi_all() { return implicit_after_polling(GEX_EC_GET | GEX_EC_PUT); }
void gasnet_begin_nbi_accessregion() { gex_NBI_BeginAccessRegion(0); }
gasnet_handle_t gasnet_end_nbi_accessregion() { return gex_NBI_EndAccessRegion(0); }
