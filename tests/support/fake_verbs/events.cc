// The stand-in for libibverbs: completion queues, their channels, asynchronous events.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "support/fake_verbs/objects.h"

namespace lintel::fake_verbs {

namespace {

void ring(int descriptor) {
  const uint64_t one = 1;
  static_cast<void>(!write(descriptor, &one, sizeof one));
}

// Like with real devices, O_NONBLOCK of the descriptor decides whether this blocks.
bool take_ring(int descriptor) {
  uint64_t one = 0;
  return read(descriptor, &one, sizeof one) == static_cast<ssize_t>(sizeof one);
}

}  // namespace

void raise(Context& context, const ibv_async_event& event) {
  context.events.push_back(event);
  ring(context.async_fd);
}

void raise_everywhere(Device& device, ibv_event_type type) {
  for (Context* const context : world().contexts) {
    if (context->owner != &device) continue;
    ibv_async_event event{};
    event.event_type = type;
    event.element.port_num = 1;
    raise(*context, event);
  }
}

unsigned* events_of(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return &static_cast<CompletionQueue*>(event.element.cq)->events;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return &static_cast<QueuePair*>(event.element.qp)->events;
    default:
      return nullptr;
  }
}

void forget_events(Context& context, const void* object) {
  std::erase_if(context.events, [&](const ibv_async_event& event) {
    return events_of(event) != nullptr && event.element.cq == object;
  });
}

void await_acknowledgements(std::unique_lock<std::mutex>& lock, const unsigned& events,
                            const char* what) {
  constexpr std::chrono::seconds patience(20);
  if (!world().acknowledged.wait_for(lock, patience, [&] { return events == 0; }))
    violation(std::string(what) + " with events that are not acknowledged");
}

void break_queue(CompletionQueue& queue) {
  if (queue.broken) return;
  queue.broken = true;
  ibv_async_event event{};
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = &queue;
  raise(*static_cast<Context*>(queue.context), event);
}

void complete(CompletionQueue& queue, const Completion& completion) {
  if (queue.broken) return;
  if (queue.entries.size() >= static_cast<size_t>(queue.cqe)) {
    violation("a completion queue has overflowed");
    break_queue(queue);
    return;
  }
  queue.entries.push_back(completion);
  if (!queue.armed || queue.channel == nullptr) return;
  queue.armed = false;
  static_cast<Channel*>(queue.channel)->events.push_back(&queue);
  ring(queue.channel->fd);
}

int poll_cq(ibv_cq* base, int most, ibv_wc* completions) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_poll_cq"); error != 0) return -error;
  auto& queue = static_cast<CompletionQueue&>(*base);
  int count = 0;
  for (; count < most && !queue.entries.empty(); ++count) {
    const Completion& next = queue.entries.front();
    completions[count] = next.shown;
    if (next.of_send) {
      const auto found = all.queue_pairs.find(next.queue_pair);
      if (found != all.queue_pairs.end())
        found->second->retired = std::max(found->second->retired, next.requests);
    }
    queue.entries.pop_front();
  }
  return count;
}

int req_notify_cq(ibv_cq* base, int) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_req_notify_cq"); error != 0) return error;
  static_cast<CompletionQueue&>(*base).armed = true;
  return 0;
}

void remove_completions(uint32_t queue_pair) {
  if (!world().settings.completions_vanish) return;
  const auto found = world().queue_pairs.find(queue_pair);
  for (ibv_cq* const base : {found->second->send_cq, found->second->recv_cq})
    std::erase_if(static_cast<CompletionQueue*>(base)->entries,
                  [&](const Completion& entry) { return entry.queue_pair == queue_pair; });
}

}  // namespace lintel::fake_verbs

using namespace lintel::fake_verbs;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_create_comp_channel"); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const channel = new Channel{};
  channel->context = context;
  channel->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  ++static_cast<Context*>(context)->users;
  ++all.in_use.channels;
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* base) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  auto* const channel = static_cast<Channel*>(base);
  if (channel->refcnt != 0) {
    violation("ibv_destroy_comp_channel with completion queues in use");
    return EBUSY;
  }
  close(channel->fd);
  --static_cast<Context*>(channel->context)->users;
  --all.in_use.channels;
  delete channel;
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel,
                      int) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  int error = call_fault("ibv_create_cq");
  if (error == 0 && (entries < 1 || entries > all.settings.max_cqe)) error = EINVAL;
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const queue = new CompletionQueue{};
  queue->context = context;
  queue->channel = channel;
  queue->cq_context = user;
  queue->cqe = entries;
  if (channel != nullptr) ++channel->refcnt;
  ++static_cast<Context*>(context)->users;
  ++all.in_use.completion_queues;
  return queue;
}

int ibv_resize_cq(ibv_cq* base, int entries) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (const int error = call_fault("ibv_resize_cq"); error != 0) return error;
  auto* const queue = static_cast<CompletionQueue*>(base);
  if (entries < 1 || entries > all.settings.max_cqe ||
      queue->entries.size() > static_cast<size_t>(entries))
    return EINVAL;
  queue->cqe = entries;
  return 0;
}

int ibv_destroy_cq(ibv_cq* base) {
  World& all = world();
  std::unique_lock guard(all.lock);
  auto* const queue = static_cast<CompletionQueue*>(base);
  if (queue->users != 0) {
    violation("ibv_destroy_cq with queue pairs in use");
    return EBUSY;
  }
  if (queue->channel != nullptr) {
    auto* const channel = static_cast<Channel*>(queue->channel);
    std::erase(channel->events, queue);
    --channel->refcnt;
  }
  await_acknowledgements(guard, queue->events, "ibv_destroy_cq");
  auto* const context = static_cast<Context*>(queue->context);
  forget_events(*context, queue);
  --context->users;
  --all.in_use.completion_queues;
  delete queue;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* base, ibv_cq** queue, void** user) {
  for (;;) {
    if (!take_ring(base->fd)) return -1;
    World& all = world();
    const std::lock_guard guard(all.lock);
    auto* const channel = static_cast<Channel*>(base);
    if (channel->events.empty()) continue;  // the queue has been destroyed
    CompletionQueue* const first = channel->events.front();
    channel->events.pop_front();
    ++first->events;
    *queue = first;
    *user = first->cq_context;
    return 0;
  }
}

void ibv_ack_cq_events(ibv_cq* queue, unsigned count) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  static_cast<CompletionQueue*>(queue)->events -= count;
  all.acknowledged.notify_all();
}

int ibv_get_async_event(ibv_context* base, ibv_async_event* event) {
  for (;;) {
    if (!take_ring(base->async_fd)) return -1;
    World& all = world();
    const std::lock_guard guard(all.lock);
    auto* const context = static_cast<Context*>(base);
    if (context->events.empty()) continue;
    *event = context->events.front();
    context->events.pop_front();
    if (unsigned* const unacknowledged = events_of(*event)) ++*unacknowledged;
    return 0;
  }
}

void ibv_ack_async_event(ibv_async_event* event) {
  World& all = world();
  const std::lock_guard guard(all.lock);
  if (unsigned* const unacknowledged = events_of(*event)) --*unacknowledged;
  all.acknowledged.notify_all();
}

}  // extern "C"
