/* portals4_runtime.h: how the processes of a job find each other. Link with libportals_runtime
 * (pkg-config portals4_runtime, CMake Portals4::portals_runtime).
 *
 * Two interfaces, which work together:
 *
 *  - PtlJob...: a job that a launcher started through PMIx (Slurm's srun, Open MPI's mpirun,
 *    prterun), a job by hand (PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP in the environment), or a
 *    process alone, which is a job of one. PtlJobOpen is all that most programs need.
 *  - PtlSetRank and its companions: the run-time interface of earlier Portals implementations, by
 *    which a program says itself who belongs to the process group of an interface.
 *
 * What holds for every function unless it says otherwise:
 *
 *  - Threads: any thread may call it at any time; calls are serialised. Not from signal handlers.
 *  - Arrays and outputs belong to the caller again when the function returns; outputs are
 *    meaningful only on success.
 *  - After PTL_FAIL of a PtlJob... function, PtlJobError says what failed and what to do; the same
 *    line has been written to standard error.
 *  - A forked child has no place in its parent's job and no groups: PtlJobInit returns PTL_FAIL
 *    there.
 *
 * docs/jobs.md has the rest. Numbers in parentheses are sections of the Portals 4.3
 * specification.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PORTALS4_RUNTIME_H
#define PORTALS4_RUNTIME_H

#include <portals4.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------- jobs */

/** The place of this process in its job. */
typedef struct ptl_job_info {
  ptl_rank_t rank;      /* 0 to size - 1 */
  ptl_rank_t size;      /* processes of the job */
  uint32_t local_rank;  /* 0 to local_size - 1, in the order of ranks on this node */
  uint32_t local_size;  /* processes of the job on this node */
  uint32_t node_count;  /* nodes that the job runs on */
  const char* launcher; /* "pmix", "environment" or "none"; lives as long as the process */
  const char* name;     /* of the job, unique on the machine while it runs; until PtlJobFini */
} ptl_job_info_t;

/** Joins the job, or adds a reference to it. Before the first PtlNIInit of the process, since
 * interfaces admit peers by the job secret; before or after PtlInit. The first call is
 * collective: the processes agree on the secret. In a job by hand, PtlNIInit with PTL_PID_ANY then
 * takes the pid that the environment has for this process.
 * @return PTL_OK; PTL_FAIL if this process was launched but the launcher cannot be reached, or the
 *       environment is inconsistent; PTL_IN_USE if an interface is open already. */
PTL_API int PtlJobInit(void) PTL_NOEXCEPT;

/** Drops a reference; the last one leaves the job. Interfaces stay open. Not collective, but a
 * launcher may take a process that ends without it for failed. A process can join a job only once.
 * @return PTL_OK; PTL_NO_INIT. */
PTL_API int PtlJobFini(void) PTL_NOEXCEPT;

/** Says which place this process has in its job.
 * @param info  gets the place of this process.
 * @return PTL_OK; PTL_NO_INIT before PtlJobInit; PTL_ARG_INVALID. */
PTL_API int PtlJobGetInfo(ptl_job_info_t* info) PTL_NOEXCEPT;

/** The node of a rank. Nodes are numbered from 0 in the order of their lowest ranks, the same in
 * all processes. The first call asks for all ranks and keeps four bytes for each.
 * @param rank  less than the size of the job.
 * @param node  gets a number less than node_count.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID; PTL_FAIL; PTL_NO_SPACE. */
PTL_API int PtlJobGetNode(ptl_rank_t rank, uint32_t* node) PTL_NOEXCEPT;

/** Sets up an interface from nothing: PtlJobInit, PtlInit, PtlNIInit, PtlJobPublish and, if it is
 * logically addressed, PtlJobSetMap. Collective: all processes of the job call it, with the same
 * iface and options, in the same order as other collective calls. An interface that another
 * library of the process has open is opened once more (3.6.2). When it returns, all processes have
 * opened their interfaces. Their portal table entries and maps are there after the next
 * PtlJobBarrier.
 * @param iface    PTL_IFACE_DEFAULT, or a number that `ptl_info` lists.
 * @param options  as in PtlNIInit.
 * @param desired  limits, or NULL for the defaults.
 * @param actual   gets the limits granted; may be NULL.
 * @param ni       gets the handle.
 * @return PTL_OK; PTL_FAIL; PTL_ARG_INVALID; the codes of PtlJobInit, PtlInit, PtlNIInit and
 *       PtlSetMap. After a failure nothing stays open that this call has opened. */
PTL_API int PtlJobOpen(ptl_interface_t iface, unsigned int options, const ptl_ni_limits_t* desired,
                       ptl_ni_limits_t* actual, ptl_handle_ni_t* ni) PTL_NOEXCEPT;

/** Undoes PtlJobOpen: PtlNIFini, PtlFini, PtlJobFini. Not collective: call PtlJobBarrier before, so
 * that no process still needs this one.
 * @param ni  from PtlJobOpen.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID. */
PTL_API int PtlJobClose(ptl_handle_ni_t ni) PTL_NOEXCEPT;

/** Publishes the nid and pid of this process on an interface. The first interface that a
 * process publishes is the first one of every other, and so on. Does not wait.
 * @param ni  an open interface of any kind, at most once.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID; PTL_FAIL, also if a job by hand names another nid
 *       or pid than the interface has. */
PTL_API int PtlJobPublish(ptl_handle_ni_t ni) PTL_NOEXCEPT;

/** Fetches the nids and pids that all processes published for an interface. Collective, unless
 * nothing was published since the last PtlJobGetMap, PtlJobSetMap or PtlJobBarrier.
 * @param ni        published by this process.
 * @param map_size  entries of `map`; must be the size of the job.
 * @param map       gets nid and pid by rank.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID; PTL_FAIL. */
PTL_API int PtlJobGetMap(ptl_handle_ni_t ni, ptl_size_t map_size, ptl_process_t* map) PTL_NOEXCEPT;

/** PtlJobGetMap and PtlSetMap (3.6.6): the ranks of a logically addressed interface become those of
 * the job. PtlGetRank and PtlGetRankId then know them, too. Large maps take memory once per node.
 * @param ni  published by this process, logically addressed.
 * @return as PtlJobGetMap; PTL_NO_SPACE; PTL_FAIL also if the interface has a group of its own. */
PTL_API int PtlJobSetMap(ptl_handle_ni_t ni) PTL_NOEXCEPT;

/** Waits until all processes of the job have called it. Collective. Progress of interfaces goes on.
 * If a process has died it fails or, with some launchers, does not return until these end the job.
 * @return PTL_OK; PTL_NO_INIT; PTL_FAIL. */
PTL_API int PtlJobBarrier(void) PTL_NOEXCEPT;

/** Stores a value that other processes may fetch, such as what they need before the first message.
 * Visible at once, under PMIx; a key is stored once. In a job by hand, an interface must have been
 * published before.
 * @param key    at most 64 bytes of text that does not begin with "lintel.".
 * @param value  copied.
 * @param bytes  length of the value, at most 32768; keys and values of one process share 64 KiB.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID; PTL_FAIL; PTL_NO_SPACE. */
PTL_API int PtlJobPut(const char* key, const void* value, size_t bytes) PTL_NOEXCEPT;

/** Fetches what a process stored, when it is needed, from that process alone. Waits for it, at most
 * for a minute.
 * @param rank   less than the size of the job.
 * @param key    as given to PtlJobPut there.
 * @param value  gets the value.
 * @param bytes  length of the memory at `value`; gets the length of the value.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID; PTL_FAIL if there is no such value; PTL_NO_SPACE if
 *       it is longer than *bytes, which then says how long. */
PTL_API int PtlJobGet(ptl_rank_t rank, const char* key, void* value, size_t* bytes) PTL_NOEXCEPT;

/** The secret that the processes of the job share: from PTL_JOB_KEY or PTL_JOB_KEY_FILE where they
 * are set, else made by rank 0 and distributed by PMIx. The transports use it already.
 * @param secret  gets text that ends with a zero byte.
 * @param size    bytes at `secret`.
 * @return PTL_OK; PTL_NO_INIT before PtlJobInit, and before PtlInit if the secret is in a file;
 *       PTL_IGNORED if there is none (alone or by hand, without a key); PTL_NO_SPACE if it is
 *       longer. */
PTL_API int PtlJobSecret(char* secret, size_t size) PTL_NOEXCEPT;

/** Ends the job: tells the launcher to end all processes, and ends this one. In a job by hand the
 * others notice when operations to this process fail (PTL_NI_UNDELIVERABLE). Does not return; runs
 * no exit handlers.
 * @param code  exit code, 1 to 255; others count as 1.
 * @param text  a message for the user, or NULL. */
PTL_API void PtlJobAbort(int code, const char* text) PTL_NOEXCEPT __attribute__((noreturn));

/** What the last failing PtlJob... call of this thread was about; an empty string if none failed.
 * Until the next call that fails in this thread. */
PTL_API const char* PtlJobError(void) PTL_NOEXCEPT;

/* ---------------------------------------------------------------- process groups by the program */

/* Names from Portals 3.3 that the run-time interface uses, and what they are here. */
typedef uint32_t ptl_jid_t;             /* job identifier */
typedef ptl_rank_t ptl_rid_t;           /* rank in a group */
typedef ptl_process_t ptl_process_id_t; /* `phys` is what counts: id.phys.nid, id.phys.pid */
#define PTL_JID_NONE UINT32_C(0xffffffff)
#define PTL_NI_INVALID PTL_ARG_INVALID /* not an interface handle */
#define PTL_PID_INVALID PTL_PID_IN_USE /* the pid is not the one that it must be */

/* PtlSetRank, PtlSetNIDMap and PtlSetPIDMap describe the process group of an interface. They may be
 * called
 *
 *  - with the handle of an open interface; or
 *  - with PTL_INVALID_HANDLE, before PtlNIInit: what they say then applies to the next PtlNIInit
 *    that succeeds, in any thread. That PtlNIInit takes its pid from rank and PID map if it is
 *    called with PTL_PID_ANY; fails with PTL_PID_INVALID if it is called with another pid than
 *    these say; and fails with PTL_FAIL if the nid of the interface is not that of rank and NID
 *    map.
 *
 * Each is set once. When rank and both maps are complete, a logically addressed interface gets them
 * by PtlSetMap. The group ends with the interface. Before PtlInit, all of them return PTL_NO_INIT.
 */

/** Sets the job identifier of this process.
 * @return PTL_OK; PTL_NO_INIT. */
PTL_API int PtlSetJID(ptl_jid_t jid) PTL_NOEXCEPT;

/** The job identifier: that of PtlSetJID or PTL_MY_JID; else, after PtlSetRank from the
 * environment, the pid of this process (that of the PID map or the interface); else PTL_JID_NONE.
 * @return PTL_OK; PTL_NO_INIT; PTL_ARG_INVALID. */
PTL_API int PtlGetJID(ptl_jid_t* jid) PTL_NOEXCEPT;

/** Sets rank and size of the group. With -1 for both, rank, size, maps and job identifier come from
 * the environment: PTL_MY_RID, PTL_NIDMAP, PTL_PIDMAP (numbers, nids also as 192.0.2.1, separated
 * by colons), PTL_MY_JID. Without PTL_MY_RID the rank is -1 and the size 0.
 * @param ni_handle   an open interface, or PTL_INVALID_HANDLE.
 * @param rank        less than group_size.
 * @param group_size  processes of the group.
 * @return PTL_OK; PTL_NO_INIT before PtlInit; PTL_NI_INVALID for a handle that is neither, also for
 *       a rank that is not less than group_size; PTL_FAIL if the rank or the NID map was set
 *       before, the nid that the map has for this process is not that of the interface, or the
 *       environment is inconsistent; PTL_PID_INVALID if it is the PID map or the pid. */
PTL_API int PtlSetRank(ptl_handle_ni_t ni_handle, ptl_rid_t rank, unsigned group_size) PTL_NOEXCEPT;

/** Sets the nids of the group. After PtlSetRank.
 * @param map       nids by rank; copied.
 * @param map_size  entries; must be the size of the group.
 * @return PTL_OK; PTL_NO_INIT before PtlInit or PtlSetRank; PTL_NI_INVALID, also for a NULL map;
 *       PTL_FAIL if the map was set before, has another size than the group, or has another nid for
 *       this process than the interface; PTL_NO_SPACE. */
PTL_API int PtlSetNIDMap(ptl_handle_ni_t ni_handle, const ptl_nid_t* map,
                         unsigned map_size) PTL_NOEXCEPT;

/** Sets the pids of the group. After PtlSetRank.
 * @param map       pids by rank; copied.
 * @param map_size  entries; must be the size of the group.
 * @return as PtlSetNIDMap, with PTL_PID_INVALID in the place of PTL_FAIL. */
PTL_API int PtlSetPIDMap(ptl_handle_ni_t ni_handle, const ptl_pid_t* map,
                         unsigned map_size) PTL_NOEXCEPT;

/** Rank and size of the group of an interface.
 * @return PTL_OK; PTL_NO_INIT if PtlSetRank was not called for it (nor PtlJobSetMap);
 *       PTL_NI_INVALID. */
PTL_API int PtlGetRank(ptl_handle_ni_t ni_handle, ptl_rid_t* rank,
                       unsigned* group_size) PTL_NOEXCEPT;

/** nid and pid of a rank of the group of an interface.
 * @return PTL_OK; PTL_NO_INIT if the maps have no entries for this rank; PTL_NI_INVALID. */
PTL_API int PtlGetRankId(ptl_handle_ni_t ni_handle, ptl_rid_t rank,
                         ptl_process_id_t* id) PTL_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* PORTALS4_RUNTIME_H */
