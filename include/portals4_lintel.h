/* portals4_lintel.h: what this implementation has beyond the specification: status registers,
 * functions for run-time libraries, and names that other Portals 4 libraries have, too.
 *
 * The registers (3.3.7) are read with PtlNIStatus. Those of the unexpected lists belong to the
 * logical interface; the others count for all logical interfaces of a physical one together, from
 * the time that the first of them was opened. PTL_STATS=1 prints them at PtlNIFini. Counters
 * are not synchronised: a value may lag behind by one message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PORTALS4_LINTEL_H
#define PORTALS4_LINTEL_H

#include <portals4.h>
#include <stddef.h>

/* Kinds of messages, to be added to the first register of a group. */
#define PTL_SR_LINTEL_PUT 0u
#define PTL_SR_LINTEL_GET 1u
#define PTL_SR_LINTEL_ATOMIC 2u
#define PTL_SR_LINTEL_FETCH_ATOMIC 3u /* swaps included */
#define PTL_SR_LINTEL_REPLY 4u
#define PTL_SR_LINTEL_ACK 5u
#define PTL_SR_LINTEL_KINDS 6u

/* Indexes for PtlNIStatus. Groups: PTL_SR_LINTEL_MESSAGES_SENT + PTL_SR_LINTEL_PUT, and so on. */
#define PTL_SR_LINTEL_MESSAGES_SENT 16u
#define PTL_SR_LINTEL_MESSAGES_RECEIVED 22u
#define PTL_SR_LINTEL_BYTES_SENT 28u /* payload */
#define PTL_SR_LINTEL_BYTES_RECEIVED 34u

/* Sending. */
#define PTL_SR_LINTEL_SENDS_QUEUED 40u      /* messages that could not be sent at once */
#define PTL_SR_LINTEL_LANE_FULL_RETRIES 41u /* attempts that found the queue to the peer full */

/* Unexpected headers of the logical interface. */
#define PTL_SR_LINTEL_UNEXPECTED_DEPTH 42u /* now on the unexpected lists */
#define PTL_SR_LINTEL_UNEXPECTED_PEAK 43u  /* the most there have been */

/* Progress. */
#define PTL_SR_LINTEL_POLLS 44u
#define PTL_SR_LINTEL_POLLS_WITH_WORK 45u /* those that found something */
#define PTL_SR_LINTEL_SLEEPS 46u          /* times that no thread polled and one slept */
#define PTL_SR_LINTEL_WAKEUPS 47u         /* times that a peer or a thread ended such a sleep */

/* Faults. */
#define PTL_SR_LINTEL_FRAMES_REFUSED 48u /* malformed, or from a process not allowed */
#define PTL_SR_LINTEL_PEERS_FAILED 49u   /* peers that died */

/* Networks (0 on interfaces without one). */
#define PTL_SR_LINTEL_RETRANSMISSIONS 50u /* frames sent again */
#define PTL_SR_LINTEL_FRAMES_DROPPED 51u  /* damaged, malformed, or of no connection */
#define PTL_SR_LINTEL_UNRELIABLE_SENT 52u /* messages sent once, never again: PTL_MD_UNRELIABLE */
#define PTL_SR_LINTEL_CONNECTIONS_REFUSED 53u /* other jobs, other users, other versions */

/* Messages that this process dropped as their target, by reason: PTL_SR_LINTEL_DROPPED +
 * PTL_LINTEL_DROP_NO_MATCH, and so on. With PTL_LOG_LEVEL=debug both ends write a line about each
 * reason and peer, at most every ten seconds; the initiator of a put with PTL_NO_ACK_REQ learns
 * nothing. */
#define PTL_SR_LINTEL_DROPPED 54u
typedef enum {
  PTL_LINTEL_DROP_NO_INTERFACE, /* the process has no such interface open */
  PTL_LINTEL_DROP_MALFORMED,
  PTL_LINTEL_DROP_NO_PORTAL, /* the portal table entry is not allocated */
  PTL_LINTEL_DROP_DISABLED,  /* the portal table entry is disabled */
  PTL_LINTEL_DROP_NO_MATCH,  /* no entry of either list accepts the message */
  PTL_LINTEL_DROP_NO_HEADER, /* max_unexpected_headers are in use */
  PTL_LINTEL_DROP_NO_EVENT,  /* flow control: no room in the event queue */
  PTL_LINTEL_DROP_NO_TRANSFER,
  PTL_LINTEL_DROP_USER,      /* the entry is for another uid */
  PTL_LINTEL_DROP_OPERATION, /* the entry lacks PTL_ME_OP_PUT or PTL_ME_OP_GET */
  PTL_LINTEL_DROP_REASONS
} ptl_lintel_drop_t;

/* Networks again. */
#define PTL_SR_LINTEL_PATHS_NARROWED 64u /* that lost long frames: shorter ones go there */

/* Portal table entries with PTL_LINTEL_PT_HOLD. */
#define PTL_SR_LINTEL_HELD 65u    /* messages that this process held as their target */
#define PTL_SR_LINTEL_STOPPED 66u /* requests that waited here for such an entry of a peer */

/* Bytes that this interface has sent in frames by each network port (PTL_RAILS):
 * PTL_SR_LINTEL_RAIL_BYTES for the first port, + 1 for the next one, and so on. What connected
 * queue pairs of RDMA send, read and write does not count; PTL_STATS=1 shows that. */
#define PTL_SR_LINTEL_RAIL_BYTES 67u
#define PTL_LINTEL_RAILS 4u /* ports of a process at most */

#define PTL_SR_LINTEL_END 71u /* one more than the largest index */

#ifdef __cplusplus
extern "C" {
#endif

/* Functions for run-time libraries. The remarks at the head of portals4.h hold for them, too. */

/** Sets the secret that the processes of a job share, in the place of PTL_JOB_KEY and of
 * PTL_JOB_KEY_FILE. Any thread; also before PtlInit.
 * @param key  any text; it is copied. An empty one means that there is no secret.
 * @return PTL_OK; PTL_ARG_INVALID if `key` is NULL; PTL_IN_USE if an interface is open: the key
 *       belongs to it already; PTL_NO_SPACE. Never PTL_NO_INIT. */
PTL_API int PtlLintelSetJobKey(const char* key) PTL_NOEXCEPT;

/** Reads the secret in force, wherever it was set. Any thread.
 * @param key     gets the text, with a zero byte at its end; may be NULL if size is 0.
 * @param size    bytes at `key`.
 * @param length  gets the length of the text without the zero byte; 0 if there is no secret.
 * @return PTL_OK, also if nothing was copied because `size` is 0; PTL_NO_INIT; PTL_ARG_INVALID;
 *       PTL_NO_SPACE if the text is longer. */
PTL_API int PtlLintelGetJobKey(char* key, size_t size, size_t* length) PTL_NOEXCEPT;

/** Sets the position of the process among those of its job on this node. Devices of the node that
 * only one process can use (PTL_DPDK_PORTS) are assigned by it when an interface is opened.
 * PTL_LOCAL_RANK in the environment overrides it. Any thread; also before PtlInit.
 * @param local_rank  counted from 0.
 * @return PTL_OK. Never PTL_NO_INIT. */
PTL_API int PtlLintelSetLocalRank(unsigned int local_rank) PTL_NOEXCEPT;

/** Counts the devices of a driver of accelerators, which is loaded if the process has not done so.
 * Any thread.
 * @param driver   "cuda", "hip" or "ze".
 * @param devices  gets the number.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID; PTL_FAIL if there is no driver or PTL_DEVICE_MEMORY
 *       excludes it. */
PTL_API int PtlLintelDeviceCount(const char* driver, unsigned int* devices) PTL_NOEXCEPT;

/** Allocates memory of a device. Any thread.
 * @param driver  as above.
 * @param device  less than the number of devices.
 * @param bytes   length, more than 0.
 * @param start   gets the address, at which the processor must not access the memory.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID; PTL_FAIL as above; PTL_NO_SPACE if the device has
 * no memory. */
PTL_API int PtlLintelDeviceAlloc(const char* driver, unsigned int device, ptl_size_t bytes,
                                 void** start) PTL_NOEXCEPT;

/** Frees memory that PtlLintelDeviceAlloc() allocated. Any thread.
 * @param start  as that function gave it; no operation may use the memory any more.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID if it is no memory of a device. */
PTL_API int PtlLintelDeviceFree(void* start) PTL_NOEXCEPT;

/** Finds the device that has some memory. Any thread.
 * @param start   address.
 * @param bytes   length, more than 0.
 * @param driver  gets "cuda", "hip" or "ze", or NULL for memory of the host.
 * @param device  gets the number of the device, if there is one.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID; PTL_FAIL if only a part is memory of that device.
 */
PTL_API int PtlLintelDeviceOf(const void* start, ptl_size_t bytes, const char** driver,
                              unsigned int* device) PTL_NOEXCEPT;

/** Copies memory, and waits for the end. Each side may be memory of the host or of a device, if the
 * process has loaded the driver. Any thread.
 * @param to     where to; `bytes` long.
 * @param from   where from; the two do not overlap.
 * @param bytes  length.
 * @return PTL_OK; PTL_NO_INIT; PTL_FAIL if the driver cannot copy it, or the two sides are memory
 * of different drivers. */
PTL_API int PtlLintelDeviceCopy(void* to, const void* from, ptl_size_t bytes) PTL_NOEXCEPT;

/** Functions of a run-time library that take part in PtlNIInit and PtlNIFini. */
typedef struct ptl_lintel_hooks {
  /** PtlNIInit has checked its arguments. May change *pid; PtlNIInit returns any code but PTL_OK at
   * once. Runs in the calling thread, which holds no lock of the library. */
  int (*opening)(ptl_interface_t iface, unsigned int options, ptl_pid_t* pid);
  /** Called once, in the same thread, after `opening` returned PTL_OK. `code` is what PtlNIInit
   * would return; if it is PTL_OK, ni_handle is open, and any other code that the hook returns
   * closes it again and is returned in its place. Otherwise ni_handle is PTL_INVALID_HANDLE. */
  int (*opened)(ptl_handle_ni_t ni_handle, int code);
  /** The last reference to ni_handle is about to end, by PtlNIFini or PtlFini. Must not call
   * Portals. */
  void (*closed)(ptl_handle_ni_t ni_handle);
} ptl_lintel_hooks_t;

/** Installs the hooks of a run-time library. There is one set for the process, for good.
 * Any thread.
 * @param hooks  lives as long as the process; no member is NULL.
 * @return PTL_OK (also if they are installed already); PTL_IN_USE if others are; PTL_ARG_INVALID.
 *       Never PTL_NO_INIT. */
PTL_API int PtlLintelSetHooks(const ptl_lintel_hooks_t* hooks) PTL_NOEXCEPT;

/** Takes several events at once, the oldest first: PtlEQGet (3.13.7) for a program that reads all
 * there are. Makes progress like it if there is none. Any thread.
 * @param events  room for `most` events. Those behind *count are undefined.
 * @param most    not 0.
 * @param count   gets the number of events taken.
 * @return PTL_OK; PTL_EQ_EMPTY; PTL_EQ_DROPPED if events before the only one taken were lost;
 *       PTL_NO_INIT; PTL_ARG_INVALID. */
PTL_API int PtlLintelEQGetMany(ptl_handle_eq_t eq_handle, ptl_event_t* events, unsigned int most,
                               unsigned int* count) PTL_NOEXCEPT;

/** Reads one entry of the map of a logically addressed interface; PtlGetMap copies all (3.6.7).
 * Any thread.
 * @param rank  less than the size of the map.
 * @param id    gets nid and pid.
 * @return PTL_OK; PTL_IGNORED if no map was set; PTL_ARG_INVALID, also for a rank beyond the map.
 */
PTL_API int PtlLintelGetMapEntry(ptl_handle_ni_t ni_handle, ptl_rank_t rank,
                                 ptl_process_t* id) PTL_NOEXCEPT;

/* How a process is reached. Texts end with a zero byte; longer ones are cut. */
typedef struct ptl_lintel_path {
  char transport[16]; /* "local", "shm", "verbs", "dpdk" or "udp"; empty if nothing reaches it */
  char device[64];    /* what carries the messages: "eth0", "mlx5_0:1", "/dev/shm"; may be empty */
  /* Why no transport that is tried earlier reaches the process, or none at all. */
  char reason[512];
} ptl_lintel_path_t;

/** Says by which transport a process is reached, and why not by a better one. Prepares for the
 * first message to it, as PtlPut does, but sends none: over a network it is not known yet
 * whether the process exists. One that has failed is not connected again. May take a lock and
 * system calls; any thread.
 * @param ni_handle  an open interface.
 * @param target     a process as in PtlPut: nid and pid, or a rank of a logical interface (3.9).
 * @param path       gets the answer, also with PTL_FAIL.
 * @return PTL_OK; PTL_FAIL if no transport reaches the process, or if it has failed since it was
 *       connected: `reason` says why; PTL_NO_INIT; PTL_ARG_INVALID; PTL_NO_SPACE. */
PTL_API int PtlLintelGetPath(ptl_handle_ni_t ni_handle, ptl_process_t target,
                             ptl_lintel_path_t* path) PTL_NOEXCEPT;

/** A sentence about a return code, with its name: for messages. Any thread; needs no PtlInit.
 * PtlToStr gives the bare name, also of events and failures.
 * @param code  what a function of Portals returned (3.3.8).
 * @return text that stays; never NULL. */
PTL_API const char* PtlLintelStrError(int code) PTL_NOEXCEPT;

/* An option of PtlPTAlloc (3.7.1): a message for which there is no room is held instead of dropped.
 * That is one that no entry of either list accepts, or for which no unexpected header is free. It
 * is delivered when there is room: in the order of the messages of its initiator to this portal
 * table entry, none of which passes it. Until then this initiator is stopped: its further puts,
 * gets and atomics to this portal table entry wait in its process, each as an operation whose
 * events follow (a buffer of PTL_MD_VOLATILE may be reused at once). From 1,024 on, the functions
 * that start one return PTL_NO_SPACE and do nothing: call again later. Triggered operations are not
 * counted. Other portal table entries, initiators and targets are not affected.
 * Messages that were under way when their initiator was stopped are kept in memory of the library,
 * at most 32,768 of a peer. More come only if a process sends and never polls
 * (PTL_PROGRESS=caller): those are dropped. PtlPTFree and PtlNIFini drop what is held; initiators
 * get what they get for an entry that is not allocated. While the entry is disabled, what is held
 * stays. A peer that dies leaves the held messages that came with their payload. Not together with
 * PTL_PT_FLOWCTRL: PTL_ARG_INVALID. */
#define PTL_LINTEL_PT_HOLD (1u << 5)

/* Names that programs written for other Portals 4 libraries use. */

typedef ptl_pt_index_t ptl_index_t;

/* An option of PtlPTAlloc: messages may be matched in any order. It makes no difference here. */
#define PTL_PT_MATCH_UNORDERED (1u << 4)

/* What PtlToStr names. */
typedef enum {
  PTL_STR_ERROR,    /* a return code */
  PTL_STR_EVENT,    /* a ptl_event_kind_t */
  PTL_STR_FAIL_TYPE /* a ptl_ni_fail_t */
} ptl_str_type_t;

/** Names a constant. Any thread; needs no PtlInit.
 * @return text that stays; "unknown" if there is no such constant. Never NULL. */
PTL_API const char* PtlToStr(int value, ptl_str_type_t type) PTL_NOEXCEPT;

/* Bytes that PtlEvToStr writes at most, with the zero byte at the end. */
#define PTL_EV_STR_SIZE 512

/** Writes an event as text. Any thread; needs no PtlInit.
 * @param verbose  0: its kind and its result; otherwise the fields, too, that table 3-3 defines for
 *                 its kind.
 * @param text     at least PTL_EV_STR_SIZE bytes.
 * @return length of the text without the zero byte. */
PTL_API int PtlEvToStr(int verbose, const ptl_event_t* event, char* text) PTL_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* PORTALS4_LINTEL_H */
