// The tables of functions of an endpoint: one file of each concept defines its own.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

namespace lintel::ofi {

extern fi_ops_ep endpoint_ops;            // transfer/endpoint_calls.cc
extern fi_ops_cm name_ops;                // transfer/endpoint_calls.cc
extern fi_ops_collective collective_ops;  // transfer/endpoint_calls.cc
extern fi_ops_msg message_ops;            // transfer/message.cc
extern fi_ops_tagged tagged_ops;          // transfer/tagged.cc
extern fi_ops_rma memory_ops;             // transfer/memory.cc
extern fi_ops_atomic atomic_ops;          // transfer/atomic_calls.cc

// Calls of endpoints that share a receive context, which send; and of the context, which receives.
extern fi_ops_msg message_send_ops;       // transfer/message.cc
extern fi_ops_msg message_receive_ops;    // transfer/message.cc
extern fi_ops_tagged tagged_send_ops;     // transfer/tagged.cc
extern fi_ops_tagged tagged_receive_ops;  // transfer/tagged.cc
extern fi_ops_rma no_memory_ops;          // transfer/endpoint_calls.cc
extern fi_ops_atomic no_atomic_ops;       // transfer/endpoint_calls.cc

}  // namespace lintel::ofi
