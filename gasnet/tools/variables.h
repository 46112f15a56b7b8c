/* variables.h: the variables of the environment that this library knows. Set-up path.
 *
 * GASNET_VERBOSEENV and gasnet_info list them. The texts of defaults here are for users only; the
 * code that reads a variable has the default itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_TOOLS_VARIABLES_H
#define LINTEL_GASNET_TOOLS_VARIABLES_H

#include "tools/headers.h"

namespace lintel::gasnet {

struct Variable {
  const char* name;
  const char* default_value; /* "-": not set */
  const char* help;
};

constexpr Variable kVariables[] = {
    {"GASNET_AM_BLOCK_SIZE", "256KB", "bytes of a block for payloads of messages"},
    {"GASNET_AM_CREDITS", "128", "requests of a process that may be under way"},
    {"GASNET_AM_REQUEST_BLOCKS", "4", "blocks for payloads of requests"},
    {"GASNET_AM_REQUEST_EVENTS", "1024", "places in the queue for requests"},
    {"GASNET_BACKTRACE", "0", "write a backtrace on fatal errors"},
    {"GASNET_BACKTRACE_MT", "1", "the backtrace has all threads"},
    {"GASNET_BACKTRACE_NODES", "*", "ranks that write a backtrace"},
    {"GASNET_BACKTRACE_SIGNAL", "-", "a signal that writes a backtrace"},
    {"GASNET_BACKTRACE_TYPE", "GDB,GSTACK,PSTACK,EXECINFO", "mechanisms of backtraces, in order"},
    {"GASNET_BARRIER", "DISSEM", "dissemination is the only one; other names are accepted"},
    {"GASNET_CATCH_EXIT", "1", "exit() ends the job"},
    {"GASNET_COLL_SCRATCH_SIZE", "0", "accepted: teams need no scratch space"},
    {"GASNET_EXITTIMEOUT", "-", "seconds that a process may take to end"},
    {"GASNET_EXITTIMEOUT_FACTOR", "0.01", "default timeout: seconds per process"},
    {"GASNET_EXITTIMEOUT_MAX", "5", "default timeout: upper limit"},
    {"GASNET_EXITTIMEOUT_MIN", "2", "default timeout: fixed part"},
    {"GASNET_FREEZE", "0", "wait for a debugger at the start"},
    {"GASNET_FREEZE_ON_ERROR", "0", "wait for a debugger on fatal errors"},
    {"GASNET_FREEZE_SIGNAL", "-", "a signal that waits for a debugger"},
    {"GASNET_FS_SYNC", "0", "sync() at the end"},
    {"GASNET_HOST_DETECT", "conduit", "how hosts are distinguished: conduit, gethostid, hostname"},
    {"GASNET_MAX_SEGSIZE", GASNETI_MAX_SEGSIZE_CONFIGURE, "largest segment; /P process, /H host"},
    {"GASNET_MAX_THREADS", "256", "client threads that may be alive; 1 in SEQ"},
    {"GASNET_NO_CATCH_SIGNAL", "-", "faults that get no handler"},
    {"GASNET_PORTALS4_SPAWNER", "-", "of gasnetrun_portals4: pmix, mpi or fork"},
    {"GASNET_PSHM_NODES", "-", "not used: the launcher gives the number of processes"},
    {"GASNET_STATSFILE", "-", "statistics; % is the rank"},
    {"GASNET_STATSMASK", "all", "categories of the statistics"},
    {"GASNET_STATSNODES", "*", "ranks that write statistics"},
    {"GASNET_SUPERNODE_MAXSIZE", "0", "processes in a neighbourhood; 0 for all of a host"},
    {"GASNET_TMPDIR", "-", "not used: there are no temporary files"},
    {"GASNET_TRACEFILE", "-", "trace; % is the rank"},
    {"GASNET_TRACEFLUSH", "0", "flush after each line"},
    {"GASNET_TRACELOCAL", "1", "trace local puts and gets"},
    {"GASNET_TRACEMASK", "all", "categories of the trace"},
    {"GASNET_TRACENODES", "*", "ranks that write a trace"},
    {"GASNET_VERBOSEENV", "0", "print settings"},
    {"GASNET_VIS_AMPIPE", "1", "small pieces of strided transfers travel in messages"},
    {"GASNET_VIS_GET_MAXCHUNK", "8KB", "bytes of such a message of a get"},
    {"GASNET_VIS_MAXCHUNK", "8KB", "the default of both"},
    {"GASNET_VIS_PUT_MAXCHUNK", "8KB", "bytes of such a message of a put"},
    {"GASNET_VIS_REMOTECONTIG", "-", "not used"}};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_TOOLS_VARIABLES_H
