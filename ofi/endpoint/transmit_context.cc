#include "endpoint/transmit_context.h"

#include <new>

#include "base/provider.h"
#include "base/unsupported.h"
#include "domain/domain.h"

namespace lintel::ofi {
namespace {

fi_ops context_object_ops =
    object_ops([](Object* object) { return TransmitContext::of(object).close(); });
fi_ops_ep context_ops = {.size = sizeof(fi_ops_ep),
                         .cancel = unsupported(&fi_ops_ep::cancel),
                         .getopt = unsupported(&fi_ops_ep::getopt),
                         .setopt = unsupported(&fi_ops_ep::setopt),
                         .tx_ctx = unsupported(&fi_ops_ep::tx_ctx),
                         .rx_ctx = unsupported(&fi_ops_ep::rx_ctx),
                         .rx_size_left = unsupported(&fi_ops_ep::rx_size_left),
                         .tx_size_left = unsupported(&fi_ops_ep::tx_size_left)};

}  // namespace

TransmitContext::TransmitContext(Domain& domain, void* context) noexcept
    : fid_stx{{FI_CLASS_STX_CTX, context, &context_object_ops}, &context_ops}, domain_(domain) {
  domain_.add_user();
}

int TransmitContext::open(fid_domain* domain, fi_tx_attr*, fid_stx** result,
                          void* context) noexcept {
  auto* const opened = new (std::nothrow) TransmitContext(Domain::of(domain), context);
  if (opened == nullptr) return -FI_ENOMEM;
  *result = opened;
  return 0;
}

int TransmitContext::close() noexcept {
  if (users_ != 0) {
    FI_WARN(provider(), FI_LOG_EP_CTRL, "%zu endpoints use the context; close them first.\n",
            users_);
    return -FI_EBUSY;
  }
  domain_.remove_user();
  delete this;
  return 0;
}

}  // namespace lintel::ofi
