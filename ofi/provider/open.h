// fi_fabric, fi_domain and fi_endpoint: what lies in what. Set-up path.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

namespace lintel::ofi {

int open_fabric(fi_fabric_attr* attr, fid_fabric** result, void* context) noexcept;
int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** result, void* context) noexcept;
int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** result, void* context) noexcept;

}  // namespace lintel::ofi
