/* packed.cc: messages with many small pieces, and their handlers. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "vis/packed.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "am/handlers.h"
#include "am/token.h"
#include "client/client.h"
#include "endpoint/endpoint.h"
#include "job/job.h"
#include "job/mutex.h"
#include "job/thread.h"
#include "segment/segment.h"
#include "vis/copy.h"

namespace lintel::gasnet {
namespace {

/* Below GEX_AM_INDEX_BASE. The room coll has the indexes from 1 on. */
constexpr gex_AM_Index_t kPutHandler = 64;
constexpr gex_AM_Index_t kPutDoneHandler = 65;
constexpr gex_AM_Index_t kGetHandler = 66;
constexpr gex_AM_Index_t kGetDoneHandler = 67;
constexpr gex_AM_Index_t kCompletionHandler = 68;

constexpr unsigned int kPutArguments = 3;

/** A message that has not been answered yet. */
struct OpenMessage {
  gasneti_event* event = nullptr; /* NULL if this place is free */
  std::vector<Run> near;          /* destination of the data of a get */
};

/** Open messages by number. There are at most as many as credits. Places are used again. */
class OpenMessages {
 public:
  uint32_t open(gasneti_event& event, const Run* near, size_t count) {
    const LockGuard lock(mutex_);
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(messages_.size()));
      messages_.emplace_back();
    }
    const uint32_t number = free_.back();
    free_.pop_back();
    gasneti_assert(!messages_[number].event);
    messages_[number].event = &event;
    messages_[number].near.assign(near, near + count);
    return number;
  }
  /** The address of the message is constant until close(). */
  OpenMessage& of(gex_AM_Arg_t number, gex_Rank_t source) {
    const LockGuard lock(mutex_);
    const auto index = static_cast<uint32_t>(number);
    if (index >= messages_.size() || !messages_[index].event)
      gasnett_fatalerror_nopos("rank %u answers a message that was not sent", source);
    return messages_[index];
  }
  void close(gex_AM_Arg_t number) {
    const LockGuard lock(mutex_);
    gasneti_assert(messages_[static_cast<uint32_t>(number)].event);
    messages_[static_cast<uint32_t>(number)].event = nullptr;
    free_.push_back(static_cast<uint32_t>(number));
  }

 private:
  Mutex mutex_;
  std::deque<OpenMessage> messages_ LINTEL_GASNET_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_ LINTEL_GASNET_GUARDED_BY(mutex_);
};

OpenMessages& open_messages() {
  static OpenMessages& instance = *new OpenMessages;
  return instance;
}

PackedRun packed(const Run& run) {
  return {reinterpret_cast<uintptr_t>(run.address), run.stride, static_cast<uint32_t>(run.bytes),
          static_cast<uint32_t>(run.count)};
}

[[noreturn]] void end_for(const gasneti_token& token, const char* what) {
  gasnett_fatalerror_nopos("rank %u sent a damaged %s", token.source, what);
}

/** The runs of a message, each checked to be in the segment of this process. */
class ArrivedRuns {
 public:
  ArrivedRuns(const gasneti_token& token, const char* list, size_t count, const char* what)
      : list_(list), left_(count), token_(token), what_(what) {}
  bool next(Run* run) {
    if (left_ == 0) return false;
    PackedRun arrived;
    std::memcpy(&arrived, list_, sizeof arrived);
    list_ += sizeof arrived;
    --left_;
    *run = {reinterpret_cast<char*>(arrived.address), arrived.stride, arrived.bytes, arrived.count};
    const SegmentTable::Entry segment = segment_table().of(job().rank(), 0);
    if (run->count == 0 || !run->is_inside(segment.address, segment.bytes) ||
        run->bytes * run->count > kLargestData - total_)
      end_for(token_, what_);
    total_ += run->bytes * run->count;
    return true;
  }
  size_t total() const { return total_; }

 private:
  const char* list_;
  size_t left_;
  size_t total_ = 0;
  const gasneti_token& token_;
  const char* what_;
};

void on_put(gex_Token_t token, void* payload, size_t bytes, gex_AM_Arg_t message,
            gex_AM_Arg_t run_count, gex_AM_Arg_t data_bytes) {
  const size_t data_length = static_cast<uint32_t>(data_bytes);
  const size_t runs = static_cast<uint32_t>(run_count);
  if (runs > kLargestRunList || data_length > kLargestData ||
      data_length + runs * sizeof(PackedRun) != bytes)
    end_for(*token, "put");
  char* data = static_cast<char*>(payload);
  ArrivedRuns arrived(*token, data + data_length, runs, "put");
  size_t taken = 0;
  for (Run run; arrived.next(&run); taken = arrived.total()) {
    if (arrived.total() > data_length) end_for(*token, "put");
    copy_run(run, packed_like(run, data + taken));
  }
  gex_AM_ReplyShort1(token, kPutDoneHandler, 0, message);
}

void on_put_done(gex_Token_t token, gex_AM_Arg_t message) {
  gasneti_event& event = *open_messages().of(message, token->source).event;
  open_messages().close(message);
  event.count_answer();
}

void on_get(gex_Token_t token, void* payload, size_t bytes, gex_AM_Arg_t message) {
  const size_t runs = bytes / sizeof(PackedRun);
  if (runs > kLargestRunList || runs * sizeof(PackedRun) != bytes) end_for(*token, "get");
  SendRecord* const record = messages().reply_record(0);
  char* const data = place_for_data(*record, false, 1);
  ArrivedRuns arrived(*token, static_cast<char*>(payload), runs, "get");
  size_t packed_bytes = 0;
  for (Run run; arrived.next(&run); packed_bytes = arrived.total())
    copy_run(packed_like(run, data + packed_bytes), run);
  token->has_replied = true;
  send_medium({record, token->source, true, kGetDoneHandler, 1, &message}, data, packed_bytes);
}

void on_get_done(gex_Token_t token, void* data, size_t bytes, gex_AM_Arg_t message) {
  const OpenMessage& open = open_messages().of(message, token->source);
  gasneti_event& event = *open.event;
  size_t taken = 0;
  for (const Run& run : open.near) {
    if (run.bytes * run.count > bytes - taken) end_for(*token, "answer");
    copy_run(run, packed_like(run, static_cast<char*>(data) + taken));
    taken += run.bytes * run.count;
  }
  open_messages().close(message);
  event.count_answer();
}

/** Calls the handler of the client as the handler of a reply, as the specification requires. */
void on_completion(gex_Token_t token, void* payload, size_t bytes, gex_AM_Arg_t handler) {
  gasneti_token reply = *token;
  reply.entry = &handler_of(*token->endpoint, static_cast<gex_AM_Index_t>(handler));
  reply.is_request = false;
  ThreadState& thread = this_thread();
  thread.in_request = false;
  thread.in_reply = true;
  call_with_data(reply.entry->gex_fnptr, &reply, payload, bytes, nullptr, 0);
  thread.in_reply = false;
  thread.in_request = true;
}

/** @return how many pieces of a row fit, each with its bytes, and one more run. */
size_t room_for(const Run& run, size_t used, size_t largest, size_t run_count) {
  if (run_count == kLargestRunList || used + sizeof(PackedRun) > largest) return 0;
  return (largest - used - sizeof(PackedRun)) / run.bytes;
}

/** Whether a piece continues a run. A second piece always does: it gives the stride. */
bool continues(const Run& run, const Run& piece) {
  return piece.count == 1 && piece.bytes == run.bytes &&
         (run.count == 1 || piece.address == run.piece(run.count));
}
void append(Run* run, const Run& piece) {
  if (run->count == 1) run->stride = piece.address - run->address;
  ++run->count;
}

/** Writes a list of runs in the format of the message. */
void write_list(char* to, const Run* runs, size_t count) {
  for (size_t i = 0; i < count; ++i, to += sizeof(PackedRun)) {
    const PackedRun run = packed(runs[i]);
    std::memcpy(to, &run, sizeof run);
  }
}

/** Removes the first pieces of a run and returns them as a run. */
Run take_front(Run* run, size_t count) {
  Run front = *run;
  front.count = count;
  run->address += run->stride * static_cast<ptrdiff_t>(count);
  run->count -= count;
  return front;
}

}  // namespace

void PackedPuts::add(const Row& row) {
  Row left = row;
  while (left.far.count != 0) {
    const size_t room =
        room_for(left.far, data_bytes_ + run_count_ * sizeof(PackedRun), largest_, run_count_);
    if (room == 0) {
      flush();
      continue;
    }
    if (!record_) {
      record_ = messages().request_record(0);
      data_ = place_for_data(*record_, false, kPutArguments);
    }
    const size_t count = std::min(room, left.far.count);
    const Run far = take_front(&left.far, count);
    const Run near = take_front(&left.near, count);
    copy_run(packed_like(near, data_ + data_bytes_), near);
    if (run_count_ != 0 && continues(runs_[run_count_ - 1], far))
      append(&runs_[run_count_ - 1], far);
    else
      runs_[run_count_++] = far;
    data_bytes_ += far.bytes * count;
  }
}

void PackedPuts::flush() {
  if (!record_) return;
  const size_t list_bytes = run_count_ * sizeof(PackedRun);
  write_list(data_ + data_bytes_, runs_, run_count_);
  event_.count_started();
  const gex_AM_Arg_t arguments[kPutArguments] = {
      static_cast<gex_AM_Arg_t>(open_messages().open(event_, nullptr, 0)),
      static_cast<gex_AM_Arg_t>(run_count_), static_cast<gex_AM_Arg_t>(data_bytes_)};
  send_medium({record_, target_, false, kPutHandler, kPutArguments, arguments}, data_,
              data_bytes_ + list_bytes);
  record_ = nullptr;
  data_bytes_ = run_count_ = 0;
}

void PackedGets::add(const Row& row) {
  Row left = row;
  while (left.far.count != 0) {
    const size_t room = room_for(left.far, data_bytes_, largest_, run_count_);
    if (room == 0) {
      flush();
      continue;
    }
    const size_t count = std::min(room, left.far.count);
    const Run far = take_front(&left.far, count);
    const Run near = take_front(&left.near, count);
    data_bytes_ += far.bytes * count;
    if (run_count_ != 0 && continues(far_runs_[run_count_ - 1], far) &&
        continues(near_runs_[run_count_ - 1], near)) {
      append(&far_runs_[run_count_ - 1], far);
      append(&near_runs_[run_count_ - 1], near);
    } else {
      far_runs_[run_count_] = far;
      near_runs_[run_count_++] = near;
    }
  }
}

void PackedGets::flush() {
  if (run_count_ == 0) return;
  SendRecord* const record = messages().request_record(0);
  event_.count_started();
  const auto message =
      static_cast<gex_AM_Arg_t>(open_messages().open(event_, near_runs_, run_count_));
  char* const list = place_for_data(*record, false, 1);
  write_list(list, far_runs_, run_count_);
  send_medium({record, target_, false, kGetHandler, 1, &message}, list,
              run_count_ * sizeof(PackedRun));
  data_bytes_ = run_count_ = 0;
}

void send_peer_completion(gex_Rank_t target, gex_AM_Index_t handler, const void* source,
                          size_t bytes) {
  const gex_AM_Arg_t argument = handler;
  send_medium({messages().request_record(0), target, false, kCompletionHandler, 1, &argument},
              source, bytes);
}

void start_vis() {
  gasneti_endpoint& endpoint = *the_client()->endpoint(0);
  const auto set = [&endpoint](gex_AM_Index_t handler, auto* function, const char* name) {
    endpoint.set_internal_handler(handler, reinterpret_cast<gex_AM_Fn_t>(function), name);
  };
  set(kPutHandler, on_put, "packed put");
  set(kPutDoneHandler, on_put_done, "packed put done");
  set(kGetHandler, on_get, "packed get");
  set(kGetDoneHandler, on_get_done, "packed get done");
  set(kCompletionHandler, on_completion, "peer completion");
}

}  // namespace lintel::gasnet
