// The common head of all objects of libfabric. In classes derived from them its own name, fid,
// stands for a member.
#pragma once

#include <rdma/fabric.h>

namespace lintel::ofi {

using Object = ::fid;

}  // namespace lintel::ofi
