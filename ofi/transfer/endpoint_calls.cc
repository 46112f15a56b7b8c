// Functions of an endpoint that transfer nothing.
#include "base/unsupported.h"
#include "endpoint/endpoint.h"
#include "transfer/deferred.h"
#include "transfer/receive.h"
#include "transfer/tables.h"

namespace lintel::ofi {
namespace {

ssize_t ep_cancel(Object* endpoint, void* context) {
  Endpoint& own = Endpoint::of(endpoint);
  return cancel_deferred(own, context) ? 0 : cancel_receive(own, context);
}

int ep_getopt(Object* endpoint, int level, int option, void* value, size_t* size) {
  return Endpoint::of(endpoint).get_option(level, option, value, size);
}

int ep_setopt(Object* endpoint, int level, int option, const void* value, size_t size) {
  return Endpoint::of(endpoint).set_option(level, option, value, size);
}

int ep_getname(Object* endpoint, void* name, size_t* size) {
  return Endpoint::of(endpoint).name(name, size);
}

}  // namespace

fi_ops_ep endpoint_ops = {.size = sizeof(fi_ops_ep),
                          .cancel = ep_cancel,
                          .getopt = ep_getopt,
                          .setopt = ep_setopt,
                          .tx_ctx = unsupported(&fi_ops_ep::tx_ctx),
                          .rx_ctx = unsupported(&fi_ops_ep::rx_ctx),
                          .rx_size_left = unsupported(&fi_ops_ep::rx_size_left),
                          .tx_size_left = unsupported(&fi_ops_ep::tx_size_left)};

fi_ops_cm name_ops = {.size = sizeof(fi_ops_cm),
                      .setname = unsupported(&fi_ops_cm::setname),
                      .getname = ep_getname,
                      .getpeer = unsupported(&fi_ops_cm::getpeer),
                      .connect = unsupported(&fi_ops_cm::connect),
                      .listen = unsupported(&fi_ops_cm::listen),
                      .accept = unsupported(&fi_ops_cm::accept),
                      .reject = unsupported(&fi_ops_cm::reject),
                      .shutdown = unsupported(&fi_ops_cm::shutdown),
                      .join = unsupported(&fi_ops_cm::join)};

fi_ops_rma no_memory_ops = {.size = sizeof(fi_ops_rma),
                            .read = unsupported(&fi_ops_rma::read),
                            .readv = unsupported(&fi_ops_rma::readv),
                            .readmsg = unsupported(&fi_ops_rma::readmsg),
                            .write = unsupported(&fi_ops_rma::write),
                            .writev = unsupported(&fi_ops_rma::writev),
                            .writemsg = unsupported(&fi_ops_rma::writemsg),
                            .inject = unsupported(&fi_ops_rma::inject),
                            .writedata = unsupported(&fi_ops_rma::writedata),
                            .injectdata = unsupported(&fi_ops_rma::injectdata)};

fi_ops_atomic no_atomic_ops = {.size = sizeof(fi_ops_atomic),
                               .write = unsupported(&fi_ops_atomic::write),
                               .writev = unsupported(&fi_ops_atomic::writev),
                               .writemsg = unsupported(&fi_ops_atomic::writemsg),
                               .inject = unsupported(&fi_ops_atomic::inject),
                               .readwrite = unsupported(&fi_ops_atomic::readwrite),
                               .readwritev = unsupported(&fi_ops_atomic::readwritev),
                               .readwritemsg = unsupported(&fi_ops_atomic::readwritemsg),
                               .compwrite = unsupported(&fi_ops_atomic::compwrite),
                               .compwritev = unsupported(&fi_ops_atomic::compwritev),
                               .compwritemsg = unsupported(&fi_ops_atomic::compwritemsg),
                               .writevalid = unsupported(&fi_ops_atomic::writevalid),
                               .readwritevalid = unsupported(&fi_ops_atomic::readwritevalid),
                               .compwritevalid = unsupported(&fi_ops_atomic::compwritevalid)};

fi_ops_collective collective_ops = {
    .size = sizeof(fi_ops_collective),
    .barrier = unsupported(&fi_ops_collective::barrier),
    .broadcast = unsupported(&fi_ops_collective::broadcast),
    .alltoall = unsupported(&fi_ops_collective::alltoall),
    .allreduce = unsupported(&fi_ops_collective::allreduce),
    .allgather = unsupported(&fi_ops_collective::allgather),
    .reduce_scatter = unsupported(&fi_ops_collective::reduce_scatter),
    .reduce = unsupported(&fi_ops_collective::reduce),
    .scatter = unsupported(&fi_ops_collective::scatter),
    .gather = unsupported(&fi_ops_collective::gather),
    .msg = unsupported(&fi_ops_collective::msg),
    .barrier2 = unsupported(&fi_ops_collective::barrier2)};

}  // namespace lintel::ofi
