#include "verbs/completions.h"

#include "util/lock.h"

namespace lintel {

unsigned Completions::poll(MessageSink& sink, unsigned budget) noexcept {
  unsigned handled = 0;
  while (handled < budget) {
    ibv_wc completions[CompletionQueue::burst];
    const unsigned count = queue_.take(completions);
    if (count == 0) break;
    for (unsigned i = 0; i < count; ++i) {
      if ((completions[i].wr_id & Arrivals::tag) != 0) {
        arrivals_.take(completions[i], sink);
      } else {
        take_send(completions[i]);
      }
    }
    handled += count;
    arrivals_.deliver(sink);
    if (count < CompletionQueue::burst) break;
  }
  if (handled != 0) report_ended(sink);
  return handled;
}

void Completions::stop_receiving(Channel& channel, MessageSink& sink) noexcept {
  if (channel.receiving == Receiving::drops) return;
  // There were no more when this began; what other peers go on sending need not be waited for.
  for (uint64_t handled = 0; handled < queue_.entries();) {
    const unsigned now = poll(sink, CompletionQueue::burst);
    if (now == 0) break;
    handled += now;
  }
  channel.receiving = Receiving::drops;
}

void Completions::take_send(const ibv_wc& completion) noexcept {
  const auto position = static_cast<uint32_t>(completion.wr_id);
  Channels::Place* const place = channels_.find(completion.wr_id >> 32, completion.qp_num);
  if (place == nullptr) return;  // the queue pair is gone
  VerbsLink& link = *place->link;
  Channel& channel = *place->channel;
  const bool success = completion.status == IBV_WC_SUCCESS;
  {
    const LockGuard guard(link.lock);
    if (!channel.queue.contains(position)) return;
    // Earlier requests without completion have succeeded. When the queue pair has failed, the peer
    // reports which messages it has, and no access to memory counts as done.
    while (channel.queue.oldest() != position) retire(link, success);
    retire(link, success);
    if (success && !channel.stopping) {
      if (channel.waiting != nullptr) accesses_.post_waiting(link);
      if (channel.exposures_to_withdraw != 0) exposures_.post_waiting(link);
    }
  }
  if (!success) channels_.stop(link, ibv_wc_status_str(completion.status));
}

void Completions::retire(VerbsLink& link, bool success) noexcept {
  Channel& channel = *link.channel;
  const PostedRequest record = channel.queue.retire();
  switch (record.kind) {
    case RequestKind::message:
      sender_.retire(link, record.index, success);
      break;
    case RequestKind::remote_access:
      accesses_.retire(channel, record.index, success);
      break;
    case RequestKind::bind:
      break;
    case RequestKind::withdraw:
      exposures_.retire(record.index);
      break;
  }
}

void Completions::release(VerbsLink& link, RemoteStatus status) noexcept {
  Channel& channel = *link.channel;
  if (channel.queue_pair == nullptr) return;
  const LockGuard guard(link.lock);
  channel.queue.discard_held();
  exposures_.abandon(channel);
  channel.queue_pair.reset();
  while (!channel.queue.is_empty()) retire(link, false);
  accesses_.abandon(channel);
  sender_.release_spares(channel);
  if (status != RemoteStatus::unsupported) accesses_.set_failure(link, status);
}

void Completions::report_ended(MessageSink& sink) noexcept {
  exposures_.release_ended();
  accesses_.report(sink);
}

}  // namespace lintel
