// Set-up path.
#include "fuzz/portal_check.h"

#include <utility>

#include "fuzz/checks.h"
#include "fuzz/linearization.h"

namespace lintel::fuzz {

PortalCheck::PortalCheck(const Phase& phase, const ListCalls& lists, int portal)
    : phase_(phase), portal_(portal) {
  history_.program = &phase.program;
  history_.endpoint = phase.endpoint;
  history_.portal = portal;
  history_.pt_index = first_portal + static_cast<uint32_t>(portal);
  history_.log = &phase.objects.portal_queue(portal).log;
  history_.messages = phase.shared.messages;
  history_.descriptor_counts = phase.shared.descriptor_counts;
  history_.memory = phase.memory.entries.data();
  history_.processes = phase.objects.processes();
  history_.uid = phase.uid;
  for (int i = 0; i < portal_counters; ++i)
    history_.counts[static_cast<std::size_t>(i)] =
        phase.objects.read(phase.objects.portal_count(portal, i));
  add_calls(lists);
}

void PortalCheck::add_calls(const ListCalls& lists) {
  for (const std::vector<PortalCall>& calls : lists.calls()) {
    std::vector<Element> sequence;
    for (const PortalCall& call : calls)
      if (call.portal == portal_)
        sequence.push_back(
            {call.action, call.id, &call.seen, call.seen.begin_ns, call.seen.end_ns});
    history_.sequences.push_back(std::move(sequence));
  }
}

Element PortalCheck::element_of(const Message& m, const Evidence& evidence) const {
  const unsigned options = phase_.program.descriptors[m.descriptor].options;
  return {Action::send,
          m.id,
          nullptr,
          phase_.shared.messages[m.id].call_ns,
          evidence.completed_ns(m.id),
          phase_.lossy && (options & PTL_MD_UNRELIABLE) != 0};
}

void PortalCheck::add_messages(const Evidence& evidence) {
  const Program& program = phase_.program;
  for (int endpoint = 0; endpoint < program.shape.endpoints; ++endpoint) {
    for (int thread = 0; thread < program.shape.threads; ++thread) {
      std::vector<Element> direct;
      std::vector<Element> triggered;
      const auto add = [&](uint32_t id, std::vector<Element>& to) {
        const Message& m = program.messages[id];
        if (m.target != phase_.endpoint || m.portal != portal_) return;
        const unsigned options = program.descriptors[m.descriptor].options;
        if ((options & (PTL_MD_UNRELIABLE | PTL_MD_UNORDERED)) != 0)
          history_.sequences.push_back({element_of(m, evidence)});
        else
          to.push_back(element_of(m, evidence));
      };
      for (const Step& step : program.steps(endpoint, thread)) {
        if (step.action == Action::send && !program.messages[step.index].triggered)
          add(step.index, direct);
        for (const Fired& fired : step.fires)
          if (fired.what == Fired::What::message) add(fired.id, triggered);
      }
      history_.sequences.push_back(std::move(direct));
      history_.sequences.push_back(std::move(triggered));
    }
  }
}

void PortalCheck::run() {
  std::vector<std::string> problems;
  const Evidence evidence(history_, problems);
  add_messages(evidence);
  const Model model(history_, evidence);
  Linearization linearization(history_, evidence, model);
  const Verdict verdict = linearization.find();
  phase_.shared.portals_checked.fetch_add(1);
  if (verdict == Verdict::undecided) phase_.shared.portals_undecided.fetch_add(1);
  if (verdict == Verdict::contradicted)
    problems.push_back("no order of its operations explains what was seen; " +
                       linearization.explanation());
  check_order_of_events(history_, problems);
  if (verdict == Verdict::explained)
    check_releases(history_, evidence, linearization.state(), problems);
  for (const std::string& problem : problems)
    phase_.problems.add("portal " + std::to_string(portal_) +
                        (phase_.program.matching ? " (matching" : " (not matching") + ", options " +
                        std::to_string(phase_.program.portal(phase_.endpoint, portal_).options) +
                        "): " + problem);
}

}  // namespace lintel::fuzz
