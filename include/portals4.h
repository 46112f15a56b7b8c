/* portals4.h: the Portals 4.3 network programming interface.
 *
 * All functions of chapter 3 of the specification, and two extensions at the end. Numbers in
 * parentheses are its sections. Types and constants are in portals4_types.h, further status
 * registers in portals4_lintel.h. Compiles as C11 and as C++11 or later.
 *
 * What holds for every function unless it says otherwise:
 *
 *  - Threads: any thread may call it at any time; calls are atomic with respect to each other and
 *    to arriving messages (2.9). It does not block. Only PtlAbort may be called from a signal
 *    handler.
 *  - Stack: a call uses at most 8 KiB of its thread's stack, so threads of libraries with small
 *    stacks may make it.
 *  - Sizes, lengths and offsets are in bytes, times in milliseconds.
 *  - Structures, arrays and outputs that a pointer argument names are read or written before the
 *    function returns and belong to the caller again then. Memory that a descriptor or an entry
 *    describes, including a PTL_IOVEC array, stays in use as said there.
 *  - Outputs are meaningful only on success.
 *  - It returns PTL_OK, or PTL_NO_INIT before the first PtlInit (after the last PtlFini), or
 *    PTL_ARG_INVALID for a handle that is stale or of another type, an index out of range, a NULL
 *    pointer where an object is needed, or a value that the argument cannot take. Further codes are
 *    listed with the function.
 *  - With PTL_LOG_LEVEL=debug in the environment each refused call writes a line to standard error:
 *    the argument, its value, the rule and its section; and so does each message that is dropped.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PORTALS4_H
#define PORTALS4_H

#include <portals4_types.h>

#define PTL_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define PTL_NOEXCEPT noexcept
extern "C" {
#else
#define PTL_NOEXCEPT
#endif

/* Initialization and cleanup (3.5) */

/** Initializes the library, or adds a reference to it (3.5.1). A forked child inherits nothing of
 * its parent's Portals objects and may start afresh with PtlInit, but not if _Fork or clone made it
 * after the parent's first PtlInit. Configuration variables (PTL_...) are read by the first call.
 * @return PTL_OK; PTL_FAIL if the system refuses what is needed (a log line says what), or after
 *         the last PtlFini of this process. */
PTL_API int PtlInit(void) PTL_NOEXCEPT;

/** Drops a reference; the last one frees every interface and object (3.5.2). No thread may use
 * Portals then, and no handle is valid any more. Blocks until the library's threads have ended. */
PTL_API void PtlFini(void) PTL_NOEXCEPT;

/** Makes all waiting and polling functions, now and from now on, return PTL_ABORTED (3.5.3).
 * Threads that wait must be released this way before their queue or counter is freed. May be called
 * from any thread and from a signal handler. */
PTL_API void PtlAbort(void) PTL_NOEXCEPT;

/* Network interfaces (3.6) */

/** Opens a logical network interface, or adds a reference to it (3.6.2). The four combinations of
 * options over one physical interface are four logical interfaces with one nid and pid.
 * @param iface     PTL_IFACE_DEFAULT, or a number that `ptl_info` lists.
 * @param options   PTL_NI_MATCHING or PTL_NI_NO_MATCHING, and PTL_NI_LOGICAL or PTL_NI_PHYSICAL.
 * @param pid       PTL_PID_ANY, or a pid below PTL_PID_MAX; ignored if this logical interface is
 *                  open already.
 * @param desired   limits to ask for, or NULL for the defaults. Values above what is possible give
 *                  the possible; later calls for the same interface do not change its limits.
 * @param actual    NULL, or receives the limits in force. Exceeding them gives PTL_NO_SPACE,
 *                  PTL_LIST_TOO_LONG or PTL_ARG_INVALID, as the function concerned says.
 * @param ni_handle receives the handle; equal for all references.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID; PTL_PID_IN_USE if another process has the pid;
 *         PTL_NO_SPACE if memory is short; PTL_FAIL if the configuration is wrong. */
PTL_API int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
                      const ptl_ni_limits_t* desired, ptl_ni_limits_t* actual,
                      ptl_handle_ni_t* ni_handle) PTL_NOEXCEPT;

/** Drops a reference to a logical interface; the last one frees it with all its objects, whose
 * handles become invalid (3.6.3). Blocks until messages in hand and calls that other threads have
 * begun are finished. Their waits, and all later calls, return PTL_ARG_INVALID. A call from the
 * destructor of a thread-local object, when its thread ends, is not waited for.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlNIFini(ptl_handle_ni_t ni_handle) PTL_NOEXCEPT;

/** Reads a status register (3.6.4).
 * @param status_register PTL_SR_DROP_COUNT and so on, or one of portals4_lintel.h.
 * @param status          receives its value.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register,
                        ptl_sr_value_t* status) PTL_NOEXCEPT;

/** Finds the interface that an object belongs to (3.6.5).
 * @param handle    any valid handle; that of an interface is given back itself.
 * @param ni_handle receives the handle of the interface.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t* ni_handle) PTL_NOEXCEPT;

/** Sets the table from ranks to processes of a logically addressed interface, replacing an earlier
 * one (3.6.6). Needed before the interface is used for communication.
 * @param map_size number of elements of `mapping`.
 * @param mapping  element N is the nid and pid of rank N; copied.
 * @return PTL_OK, PTL_NO_INIT; PTL_ARG_INVALID also on a physically addressed interface;
 *         PTL_NO_SPACE if memory is short; PTL_IGNORED if the table cannot be changed. */
PTL_API int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size,
                      const ptl_process_t* mapping) PTL_NOEXCEPT;

/** Reads the table from ranks to processes (3.6.7).
 * @param map_size        elements that `mapping` has room for; no more are written.
 * @param mapping         receives the first elements; may be NULL if map_size is 0.
 * @param actual_map_size receives the number of ranks.
 * @return PTL_OK, PTL_NO_INIT; PTL_ARG_INVALID also on a physically addressed interface;
 *         PTL_IGNORED if no map was set. */
PTL_API int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t* mapping,
                      ptl_size_t* actual_map_size) PTL_NOEXCEPT;

/* Portal table entries (3.7) */

/** Allocates a portal table entry (3.7.1).
 * @param options      PTL_PT_*, or 0.
 * @param eq_handle    queue for the events of its entries, or PTL_EQ_NONE.
 * @param pt_index_req the index wanted (0 to max_pt_index), or PTL_PT_ANY.
 * @param pt_index     receives the index.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID; PTL_PT_FULL if none is free; PTL_PT_IN_USE if the
 *         one wanted is taken; PTL_PT_EQ_NEEDED for PTL_PT_FLOWCTRL without a queue. */
PTL_API int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
                       ptl_pt_index_t pt_index_req, ptl_pt_index_t* pt_index) PTL_NOEXCEPT;

/** Frees a portal table entry (3.7.2).
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID; PTL_PT_IN_USE while entries or unexpected headers
 *         are on its lists. */
PTL_API int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) PTL_NOEXCEPT;

/** Refuses messages to a portal table entry from now on (3.7.3). Blocks until the messages that it
 * already accepted are finished and their events delivered. No PTL_EVENT_PT_DISABLED results.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) PTL_NOEXCEPT;

/** Accepts messages to a portal table entry again, whether PtlPTDisable or flow control disabled it
 * (3.7.4). Blocks until that is in force.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) PTL_NOEXCEPT;

/* Identification (3.8, 3.9) */

/** Gives the usage identifier of this process (3.8.1): its effective user id.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t* uid) PTL_NOEXCEPT;

/** Gives the identifier of this process: the rank on a logically addressed interface, nid and pid
 * on a physically addressed one (3.9.2).
 * @return PTL_OK, PTL_NO_INIT; PTL_ARG_INVALID also before PtlSetMap. A map that does not name this
 *         process gives PTL_RANK_ANY. */
PTL_API int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t* id) PTL_NOEXCEPT;

/** Gives nid and pid of this process, on any interface (3.9.3).
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t* id) PTL_NOEXCEPT;

/* Memory descriptors (3.10) */

/** Makes a memory descriptor: memory that operations of this process send from and receive into
 * (3.10.3). The memory need not exist before it is used, except with PTL_IOVEC.
 * @param md        description; copied. An array named by PTL_IOVEC (at most max_iovecs elements)
 *                  must stay as it is until PtlMDRelease.
 * @param md_handle receives the handle.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID; PTL_NO_SPACE beyond max_mds. */
PTL_API int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t* md,
                      ptl_handle_md_t* md_handle) PTL_NOEXCEPT;

/** Releases a memory descriptor (3.10.4). No operation that uses it may be pending, which means
 * without its PTL_EVENT_SEND or PTL_EVENT_REPLY; acknowledgments still to come are discarded.
 * @return PTL_OK, PTL_NO_INIT; PTL_ARG_INVALID; PTL_IN_USE while operations are pending. */
PTL_API int PtlMDRelease(ptl_handle_md_t md_handle) PTL_NOEXCEPT;

/* List entries (3.11), on interfaces with PTL_NI_NO_MATCHING */

/** Appends a list entry (3.11.2). On the priority list it first takes the unexpected headers that
 * it accepts, the oldest first, each with an *_OVERFLOW event; a PTL_LE_USE_ONCE entry takes one,
 * if there is one, and is then not linked.
 * @param pt_index  an allocated portal table entry, enabled or not.
 * @param le        description; copied. The memory (and an array named by PTL_IOVEC, at most
 *                  max_iovecs elements) is in use until the entry is unlinked, on the overflow list
 *                  until PTL_EVENT_AUTO_FREE or a successful PtlLEUnlink.
 * @param ptl_list  PTL_PRIORITY_LIST or PTL_OVERFLOW_LIST.
 * @param user_ptr  any value; given back in the events of this entry.
 * @param le_handle receives the handle.
 * @return PTL_OK, PTL_NO_INIT; PTL_ARG_INVALID also on a matching interface; PTL_NO_SPACE beyond
 *         max_entries; PTL_LIST_TOO_LONG beyond max_list_size. */
PTL_API int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le,
                        ptl_list_t ptl_list, void* user_ptr,
                        ptl_handle_le_t* le_handle) PTL_NOEXCEPT;

/** Unlinks a list entry (3.11.3). Safe for entries that have just been used or unlinked.
 * @return PTL_OK: unlinked, the memory is free; PTL_NO_INIT; PTL_IN_USE: a message uses it,
 *         unexpected headers refer to it, or, once, the library has unlinked it already;
 *         PTL_ARG_INVALID: no such entry any more, and no event or count of it follows. */
PTL_API int PtlLEUnlink(ptl_handle_le_t le_handle) PTL_NOEXCEPT;

/** Searches the unexpected headers as PtlLEAppend would, without appending (3.11.4). Results are
 * events and counts: PTL_SEARCH_ONLY gives PTL_EVENT_SEARCH for each header found,
 * PTL_SEARCH_DELETE the *_OVERFLOW event of its kind; PTL_EVENT_SEARCH with PTL_NI_NO_MATCH says
 * that nothing was found, or (without PTL_LE_USE_ONCE) nothing more.
 * @param le            selects headers; read before the call returns, its memory is not used.
 * @param ptl_search_op PTL_SEARCH_ONLY or PTL_SEARCH_DELETE.
 * @param user_ptr      any value; given back in the events of this search.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le,
                        ptl_search_op_t ptl_search_op, void* user_ptr) PTL_NOEXCEPT;

/* Match list entries (3.12), on interfaces with PTL_NI_MATCHING */

/** Appends a match list entry (3.12.2); otherwise like PtlLEAppend.
 * @param pt_index  an allocated portal table entry, enabled or not.
 * @param me        description and match criteria; copied. For the memory see PtlLEAppend.
 * @param ptl_list  PTL_PRIORITY_LIST or PTL_OVERFLOW_LIST.
 * @param user_ptr  any value; given back in the events of this entry.
 * @param me_handle receives the handle.
 * @return PTL_OK, PTL_NO_INIT; PTL_ARG_INVALID also on a non-matching interface; PTL_NO_SPACE
 *         beyond max_entries; PTL_LIST_TOO_LONG beyond max_list_size. */
PTL_API int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me,
                        ptl_list_t ptl_list, void* user_ptr,
                        ptl_handle_me_t* me_handle) PTL_NOEXCEPT;

/** Unlinks a match list entry (3.12.3); see PtlLEUnlink.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID, PTL_IN_USE. */
PTL_API int PtlMEUnlink(ptl_handle_me_t me_handle) PTL_NOEXCEPT;

/** Searches the unexpected headers as PtlMEAppend would (3.12.4); see PtlLESearch for results and
 * parameters. PTL_ME_LOCAL_INC_UH_RLENGTH is ignored.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me,
                        ptl_search_op_t ptl_search_op, void* user_ptr) PTL_NOEXCEPT;

/* Event queues (3.13) */

/** Makes an event queue (3.13.5). When it is full, the oldest events make room for new ones, and
 * the next event taken out says so with PTL_EQ_DROPPED; events of portal table entries with
 * PTL_PT_FLOWCTRL disable the entry instead.
 * @param count     number of events that it must hold at least.
 * @param eq_handle receives the handle.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID; PTL_NO_SPACE beyond max_eqs or if memory is short.
 */
PTL_API int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count,
                       ptl_handle_eq_t* eq_handle) PTL_NOEXCEPT;

/** Frees an event queue (3.13.6). No descriptor and no portal table entry may use it. After
 * PtlAbort it blocks until threads that waited on it have returned; without PtlAbort there may be
 * none.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlEQFree(ptl_handle_eq_t eq_handle) PTL_NOEXCEPT;

/** Takes the next event, if there is one (3.13.7).
 * @param event receives it (also with PTL_EQ_DROPPED).
 * @return PTL_OK; PTL_EQ_DROPPED: an event, and at least one before it was lost; PTL_EQ_EMPTY:
 *         none; PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t* event) PTL_NOEXCEPT;

/** Waits for an event and takes it (3.13.8). Blocks. Each event goes to one thread.
 * @param event receives it (also with PTL_EQ_DROPPED).
 * @return PTL_OK, PTL_EQ_DROPPED (see PtlEQGet), PTL_NO_INIT, PTL_ARG_INVALID; PTL_ABORTED after
 *         PtlAbort. */
PTL_API int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t* event) PTL_NOEXCEPT;

/** Waits up to a time for an event of any of several queues and takes it (3.13.9). Blocks. The
 * first queue of the array that has an event at the time of the call is served.
 * @param eq_handles queues of one physical interface; read until the call returns. Queues and
 *                   handles behind the first that has an event are not checked.
 * @param size       number of queues.
 * @param timeout    milliseconds; 0 looks once; PTL_TIME_FOREVER has no limit.
 * @param event      receives the event (also with PTL_EQ_DROPPED).
 * @param which      receives the index of its queue in the array.
 * @return PTL_OK, PTL_EQ_DROPPED (see PtlEQGet); PTL_EQ_EMPTY when the time is over; PTL_NO_INIT,
 *         PTL_ARG_INVALID; PTL_ABORTED after PtlAbort. */
PTL_API int PtlEQPoll(const ptl_handle_eq_t* eq_handles, unsigned int size, ptl_time_t timeout,
                      ptl_event_t* event, unsigned int* which) PTL_NOEXCEPT;

/* Counting events (3.14) */

/** Makes a counting event with both counts zero (3.14.2).
 * @param ct_handle receives the handle.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID; PTL_NO_SPACE beyond max_cts. */
PTL_API int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t* ct_handle) PTL_NOEXCEPT;

/** Frees a counting event and deletes the triggered operations that wait for it (3.14.3). No
 * descriptor and no entry may use it. After PtlAbort it blocks until threads that waited on it have
 * returned; without PtlAbort there may be none.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlCTFree(ptl_handle_ct_t ct_handle) PTL_NOEXCEPT;

/** Deletes the triggered operations that wait for a counting event (3.14.4). When it returns, none
 * of them will be carried out any more.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle) PTL_NOEXCEPT;

/** Reads a counting event (3.14.5).
 * @param event receives both counts; each is current, the pair is not read at one instant.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t* event) PTL_NOEXCEPT;

/** Waits until `success` is at least `test`, or `failure` is not zero (3.14.6). Blocks.
 * @param test  number of successes (events or bytes, whatever is counted).
 * @param event receives both counts.
 * @return PTL_OK (in both cases), PTL_NO_INIT, PTL_ARG_INVALID; PTL_ABORTED after PtlAbort. */
PTL_API int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test,
                      ptl_ct_event_t* event) PTL_NOEXCEPT;

/** Waits up to a time until one of several counting events would end a PtlCTWait (3.14.7). Blocks.
 * The first of the array that does so at the time of the call is reported.
 * @param ct_handles counting events of one physical interface; read until the call returns.
 * @param tests      the test of each.
 * @param size       number of elements of both arrays.
 * @param timeout    milliseconds; 0 looks once; PTL_TIME_FOREVER has no limit.
 * @param event      receives both counts of the one that ended the call.
 * @param which      receives its index.
 * @return PTL_OK; PTL_CT_NONE_REACHED when the time is over; PTL_NO_INIT, PTL_ARG_INVALID;
 *         PTL_ABORTED after PtlAbort. */
PTL_API int PtlCTPoll(const ptl_handle_ct_t* ct_handles, const ptl_size_t* tests, unsigned int size,
                      ptl_time_t timeout, ptl_ct_event_t* event, unsigned int* which) PTL_NOEXCEPT;

/** Sets both counts (3.14.8), each atomically. Triggered operations whose threshold is reached
 * start before the call returns.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct) PTL_NOEXCEPT;

/** Adds to one of the counts (3.14.9); for triggered operations see PtlCTSet.
 * @param increment at most one of its fields is not zero.
 * @return PTL_OK, PTL_NO_INIT; PTL_ARG_INVALID also if both fields are not zero. */
PTL_API int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment) PTL_NOEXCEPT;

/* Data movement (3.15) */

/** Sends memory of this process to an entry of the target (3.15.2). Returns when the operation is
 * started; PTL_EVENT_SEND and PTL_EVENT_ACK report its end.
 * @param md_handle     memory to send. It must not change before PTL_EVENT_SEND or PTL_EVENT_ACK,
 *                      with PTL_MD_VOLATILE and at most max_volatile_size bytes before the call
 *                      returns.
 * @param local_offset  first byte, from the start of the descriptor.
 * @param length        bytes, at most max_msg_size; offset and length lie within the descriptor.
 * @param ack_req       acknowledgment wanted; PTL_NO_ACK_REQ with PTL_MD_UNRELIABLE.
 * @param target_id     rank or nid and pid, as the interface is addressed.
 * @param pt_index      portal table entry of the target.
 * @param match_bits    select an entry on a matching interface.
 * @param remote_offset bytes from the start of the entry, unless it has PTL_ME_MANAGE_LOCAL.
 * @param user_ptr      any value; given back in the events at this process.
 * @param hdr_data      64 bits for the event at the target.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. What happens later is in the events. An extension,
 *       as of PtlGet and the atomics: PTL_NO_SPACE, see PTL_LINTEL_PT_HOLD in portals4_lintel.h. */
PTL_API int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                   ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                   ptl_hdr_data_t hdr_data) PTL_NOEXCEPT;

/** Reads from an entry of the target into memory of this process (3.15.3). PTL_EVENT_REPLY reports
 * its end.
 * @param md_handle memory to receive into; undefined until PTL_EVENT_REPLY. For the other
 *                  parameters see PtlPut.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                   ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                   ptl_size_t remote_offset, void* user_ptr) PTL_NOEXCEPT;

/** Combines memory of this process with that of the target, item by item (3.15.5). Atomic for each
 * item; events as of PtlPut.
 * @param length    bytes, at most max_atomic_size, a multiple of the item.
 * @param operation PTL_MIN to PTL_BXOR.
 * @param datatype  type of the items; must suit the operation (table 3-4). For the other parameters
 *                  see PtlPut.
 * @return PTL_OK, PTL_NO_INIT; PTL_ARG_INVALID also if operation and type do not fit. */
PTL_API int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                      ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                      ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                      ptl_hdr_data_t hdr_data, ptl_op_t operation,
                      ptl_datatype_t datatype) PTL_NOEXCEPT;

/** As PtlAtomic, and brings back what the target had before (3.15.6). PTL_EVENT_SEND goes to the
 * put descriptor, PTL_EVENT_REPLY to the get descriptor. Both belong to one interface; their memory
 * must not overlap.
 * @param get_md_handle    memory to receive into; undefined until PTL_EVENT_REPLY.
 * @param local_get_offset first byte in it.
 * @param put_md_handle    memory to send; for how long it is in use see PtlPut.
 * @param local_put_offset first byte in it.
 * @param length           bytes, at most max_fetch_atomic_size. For the other parameters see
 *                         PtlAtomic.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                           ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                           ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                           ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                           ptl_hdr_data_t hdr_data, ptl_op_t operation,
                           ptl_datatype_t datatype) PTL_NOEXCEPT;

/** Swaps, conditionally or under a mask, and brings back what the target had before (3.15.7).
 * @param length    bytes, at most max_fetch_atomic_size; one item unless operation is PTL_SWAP.
 * @param operand   one item that is compared, or the mask; copied before the call returns; not used
 *                  by PTL_SWAP, which accepts NULL.
 * @param operation PTL_SWAP to PTL_MSWAP. For the other parameters see PtlFetchAtomic.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                    ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                    const void* operand, ptl_op_t operation, ptl_datatype_t datatype) PTL_NOEXCEPT;

/** Makes the results of finished atomics visible to the processor (3.15.8). Not needed on
 * interfaces with PTL_COHERENT_ATOMICS.
 * @return PTL_OK, PTL_NO_INIT. */
PTL_API int PtlAtomicSync(void) PTL_NOEXCEPT;

/* Triggered operations (3.16)
 *
 * Each is its plain counterpart, held back at this process until the success count of
 * trig_ct_handle is at least `threshold` (at once if it already is). Operations of one counter
 * start in the order of their thresholds, those with equal ones in the order of the calls. The
 * memory is read when the operation starts, not at the call (the operand of a swap at the call);
 * descriptors and counters must stay until then. All return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID,
 * or PTL_NO_SPACE beyond max_triggered_ops. */

/** PtlPut once the threshold is reached (3.16.1). */
PTL_API int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                            ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                            ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle,
                            ptl_size_t threshold) PTL_NOEXCEPT;

/** PtlGet once the threshold is reached (3.16.2). */
PTL_API int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                            ptl_process_t target_id, ptl_pt_index_t pt_index,
                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) PTL_NOEXCEPT;

/** PtlAtomic once the threshold is reached (3.16.3). */
PTL_API int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset,
                               ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target_id,
                               ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                               ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                               ptl_op_t operation, ptl_datatype_t datatype,
                               ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) PTL_NOEXCEPT;

/** PtlFetchAtomic once the threshold is reached (3.16.4). */
PTL_API int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                                    ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                                    ptl_size_t length, ptl_process_t target_id,
                                    ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                    ptl_size_t remote_offset, void* user_ptr,
                                    ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                    ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                                    ptl_size_t threshold) PTL_NOEXCEPT;

/** PtlSwap once the threshold is reached (3.16.5). */
PTL_API int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                             ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                             ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                             ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                             ptl_hdr_data_t hdr_data, const void* operand, ptl_op_t operation,
                             ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                             ptl_size_t threshold) PTL_NOEXCEPT;

/** PtlCTInc once the threshold is reached (3.16.6). */
PTL_API int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
                              ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) PTL_NOEXCEPT;

/** PtlCTSet once the threshold is reached (3.16.7). */
PTL_API int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
                              ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) PTL_NOEXCEPT;

/* Deferred communication (3.17) and handles (3.18) */

/** Allows operations of an interface to be held back until PtlEndBundle, to send them together
 * (3.17.1). Calls nest, and concern all threads.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID. */
PTL_API int PtlStartBundle(ptl_handle_ni_t ni_handle) PTL_NOEXCEPT;

/** Starts everything held back since PtlStartBundle and ends it, one call for each (3.17.2).
 * @return PTL_OK, PTL_NO_INIT; PTL_ARG_INVALID also without a PtlStartBundle. */
PTL_API int PtlEndBundle(ptl_handle_ni_t ni_handle) PTL_NOEXCEPT;

/** Compares two handles, valid or not (3.18.1). Needs no PtlInit.
 * @return non-zero if they name the same object, else 0. */
PTL_API int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2) PTL_NOEXCEPT;

/* Extensions, not part of the specification but known to many programs */

/** PtlMEAppend once the threshold is reached; see the triggered operations for what they have in
 * common.
 * @param me        as in PtlMEAppend, and valid at the call. It is read again, and copied, when the
 *                  threshold is reached: until then it must stay, and may change. The program may
 *                  reuse it after PTL_EVENT_LINK, or when PtlMEUnlink, PtlCTCancelTriggered or
 *                  PtlCTFree has ended the append.
 * @param me_handle receives a handle at once. Until the entry is appended PtlMEUnlink cancels the
 *                  append and returns PTL_OK; the triggered operation counts towards
 *                  max_triggered_ops until its threshold is reached or its counter is freed.
 *                  If the append fails when it is due, PTL_EVENT_ERROR with this user_ptr is posted
 *                  (PTL_NI_SEGV: *me cannot be read), a counter that would count messages of the
 *                  entry counts a failure, and a line of the log says why.
 * @return as PtlMEAppend. */
PTL_API int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_me_t* me,
                                 ptl_list_t ptl_list, void* user_ptr, ptl_handle_me_t* me_handle,
                                 ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) PTL_NOEXCEPT;

/** PtlMEUnlink once the threshold is reached. If the entry is in use then, nothing happens.
 * @return PTL_OK, PTL_NO_INIT, PTL_ARG_INVALID, PTL_NO_SPACE. */
PTL_API int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle,
                                 ptl_size_t threshold) PTL_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* PORTALS4_H */
