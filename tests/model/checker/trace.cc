#include "checker/trace.h"

namespace lintel::model {

std::string trace_of(const Graph& graph, const Sites& sites) {
  std::string text;
  for (unsigned i = 0; i < most_threads; ++i) {
    if (graph.length(i) == 0) continue;
    text += "  thread " + std::to_string(i) + "\n";
    for (unsigned j = 0; j < graph.length(i); ++j) {
      const Event& event = graph.at(graph.id_of(i, j));
      constexpr const char* kinds[] = {"load", "store", "fence"};
      text += "    " + std::to_string(graph.id_of(i, j)) + ": " +
              kinds[static_cast<size_t>(event.kind)] + " " + name_of(event.order);
      if (event.kind != Kind::fence)
        text += " v" + std::to_string(event.location) + " = " + std::to_string(event.value);
      if (event.kind == Kind::load)
        text +=
            event.from == initial ? " (first value)" : " (of " + std::to_string(event.from) + ")";
      if (event.kind == Kind::store) text += " (place " + std::to_string(event.place) + ")";
      text += "  " + sites.line_of(event.site) + "\n";
    }
  }
  return text;
}

}  // namespace lintel::model
