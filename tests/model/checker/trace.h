// An execution as text: the operations of each thread, numbered in the order in which they were
// added. A load names the store that it read.
#pragma once

#include <string>

#include "checker/graph.h"
#include "checker/sites.h"

namespace lintel::model {

[[nodiscard]] std::string trace_of(const Graph& graph, const Sites& sites);

}  // namespace lintel::model
