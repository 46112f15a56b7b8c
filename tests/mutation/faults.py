"""Small faults, each of which the tests must notice: file, text, its replacement, what goes wrong."""
from typing import NamedTuple


class Fault(NamedTuple):
    file: str
    text: str  # occurs once in the file
    replacement: str
    what: str


RELIABLE, LANE, SHM, CORE, VERBS = "src/reliable/", "src/lane/", "src/shm/", "src/core/", "src/verbs/"
FAULTS = [Fault(*fault) for fault in (
    # reliability
    (RELIABLE + "send_window.cc", "if (others_work && works(path)) further_->health[path.index()].suspend(now_ns);", "", "a path that is lost is used for ever"),
    (RELIABLE + "send_window.cc", "if (is_preferred) return &candidate;", "if (is_preferred && false) return &candidate;", "short messages do not go by the first path"),
    (RELIABLE + "send_window.cc", "further_->heard = static_cast<uint8_t>(i);", "further_->heard = 0;", "answers go by the first path, which may be lost"),
    (RELIABLE + "send_path.h", "live_ || (idle && probes_ >= most_idle_probes) ? never", "live_ || (idle && live_) ? never", "an idle connection probes for ever"),
    (RELIABLE + "transmitter.cc", "probe_long(connection, path, number, connection.send.frame_bytes(), now_ns);", "probe(connection, path, number, now_ns);", "a path that loses long frames works and fails by turns"),
    (RELIABLE + "handshake.cc", "body.rail_count < most_rails &&", "true &&", "a peer tells more rails than there is room for"),
    (RELIABLE + "send_window.cc", "if (!frame.lost) continue;", "if (!frame.lost || count != 0) continue;", "only one lost frame is sent again at a time"),
    (RELIABLE + "send_window.cc", "frame.lost = true;\n    ++lost_frames_;\n  }\n  check();\n  bool", "}\n  check();\n  bool", "a timeout sends nothing again"),
    (RELIABLE + "send_window.h", "sequence_distance(frame.sequence, acknowledged_) < int32_t{selective_reach}", "sequence_distance(frame.sequence, acknowledged_) <= int32_t{selective_reach}", "one frame more than the peer keeps"),
    (RELIABLE + "send_path.h", "return transmission + reordering_threshold <= newest_arrived_;", "return transmission <= newest_arrived_;", "reordered frames count as lost"),
    (RELIABLE + "send_window.cc", "if (sequence_distance(acknowledged, acknowledged_) < 0)", "if (false)", "an overtaken acknowledgement is taken"),
    (RELIABLE + "send_window.cc", "queue_.note_sent(frame);\n      unsent_sequence_ = frame.sequence + 1;", "queue_.note_sent(frame);", "what was sent is not noted"),
    (RELIABLE + "send_path.h", "    congestion_.lost(charge);\n", "", "losses do not shrink the window"),
    (RELIABLE + "send_window.cc", "answered_ |= path(index).take_answer(probe_number);", "static_cast<void>(path(index).take_answer(probe_number));", "the answer to a probe shows no losses"),
    (RELIABLE + "retransmission_timer.h", "if (!has_timed_out() || probed_) return delay_ns;", "return delay_ns;", "no probe between two timeouts"),
    (RELIABLE + "receive_window.h", "if (ahead < 0) return Place::duplicate;", "if (ahead < -1) return Place::duplicate;", "a message is delivered twice"),
    (RELIABLE + "receive_window.h", "if (frame->sequence == sequence) return Place::duplicate;", "if (false) return Place::duplicate;", "a frame out of order is kept twice"),
    (RELIABLE + "receive_window.h", "words[word] |= uint64_t{1} << (bit % 64);", "words[word] |= uint64_t{1} << ((bit + 1) % 64);", "the wrong frame is acknowledged selectively"),
    (RELIABLE + "receive_window.h", "kept_bytes_ -= frame->length;", "", "room for kept frames leaks"),
    (RELIABLE + "reassembly.cc", "if (length > half.buffer->length - half.filled) return false;", "if (length > half.buffer->length - half.filled + 1) return false;", "reassembly is off by one"),
    (RELIABLE + "reassembly.cc", "half.filled += length;", "half.filled += length & ~1u;", "a fragment of odd length is counted short"),
    (RELIABLE + "data_receiver.cc", "connection.receive.window.advance();\n  acknowledger_.note_arrival(connection, frame.length, now_ns);\n  return Handled::yes;", "connection.receive.window.advance();\n  return Handled::yes;", "arrivals are not acknowledged"),
    (RELIABLE + "data_receiver.cc", "if (next >= length) return 0;", "if (next >= length) return count;", "a bundle may end within padding"),
    (RELIABLE + "data_receiver.cc", "header.link_word > length - sizeof header) return 0;\n    if (sizeof header + header.link_word == length) return count;", "false) return 0;\n    if (sizeof header + header.link_word >= length) return count;", "a message reaches beyond its frame"),
    (RELIABLE + "data_receiver.cc", "kept->handed_up = is_part;", "kept->handed_up = false;", "parts are handed up twice"),
    (RELIABLE + "sender.cc", "bytes % sizeof(uint64_t) != 0)\n      return false;", "false)\n      return false;", "a torn list of acknowledgements is taken"),
    (RELIABLE + "frame_seal.h", "return highest_ - counter < frames && !is_marked(counter);", "return highest_ - counter < frames;", "a repeated frame is taken"),
    (RELIABLE + "frame_seal.h", "clear(highest_ + 1, counter);", "clear(highest_ + 1, counter - 1);", "a new counter may look old"),
    (RELIABLE + "path_mtu.cc", "if (bytes >= suspected_bytes_ && losses_ < least_losses) ++losses_;", "", "a narrow path is never found"),
    (RELIABLE + "path_mtu.cc", "if (long_answered_) {", "if (short_answered_) {", "a path is taken for wider than it is"),
    (RELIABLE + "reassembly.cc", "if (part.offset > filled || part.offset + length <= filled) return Taken::more;", "if (part.offset + length <= filled) return Taken::more;", "a part after a missing one is taken"),
    (RELIABLE + "congestion.cc", "window_ = std::min(window_, most_);", "", "more than the peer can take"),
    (RELIABLE + "message_batch.h", "held_[i].pool->release(held_[i].buffer);", "if (i != 0) held_[i].pool->release(held_[i].buffer);", "buffers leak"),
    (RELIABLE + "frame_pool.cc", "used_bytes_ -= footprint(capacity_[buffer->size_class]);", "", "the pool looks full"),
    # lanes, shared memory
    (LANE + "lane_producer.cc", "room_end_ = released + ring_.count();", "room_end_ = released + ring_.count() + 1;", "cells are overwritten"),
    (LANE + "lane_producer.cc", "bytes_.note_released(released);", "bytes_.note_released(released + 1);", "payloads are overwritten"),
    (LANE + "byte_ring.h", "if (offset + bytes <= bytes_) return", "if (offset + bytes <= bytes_ + 64) return", "a payload runs over the end of the ring"),
    (LANE + "cell_ring.h", "if (place.lap_ == 0) place.lap_ = CellPlace::first_lap;", "", "lap 0 looks like an empty lane"),
    (LANE + "lane_consumer.h", "if (!place.is_published_by(word)) break;", "if (word == 0) break;", "a message of the last lap is delivered again"),
    (LANE + "lane_consumer.cc", "offset > data_bytes_ - length) return false;", "offset > data_bytes_) return false;", "a payload may lie outside the lane"),
    (LANE + "lane_acks.h", "if (count > lane_ack_places) [[unlikely]] {", "if (count > 2 * lane_ack_places) [[unlikely]] {", "too many acknowledgements are believed"),
    (LANE + "lane_acks.h", "    taken_ += count;\n", "    taken_ += count - 1;\n", "acknowledgements are taken again"),
    (SHM + "receive_lanes.cc", "if (lane.consumer.producer_sleeps()) doorbell->ring();", "static_cast<void>(lane.consumer.producer_sleeps());", "a producer that waits for room is not woken"),
    (SHM + "receive_lanes.cc", "if (lane.consumer.ready()) {\n      make_hot(lane);\n      return false;\n    }", "", "a process sleeps although a message waits"),
    (SHM + "receive_lanes.cc", "if (malformed) [[unlikely]]\n    report_malformed(sink, lane);", "", "a malformed message is ignored"),
    # matching, events
    (CORE + "matching/match_list.cc", "for (MatchNode* left = head_; left != nullptr; left = left->next_in_list) index_->remove(*left);\n  indexed_", "indexed_", "the last entries stay in the index"),
    (CORE + "matching/match_index.cc", "if (best == nullptr || cursors_[i]->sequence < (*best)->sequence) best = &cursors_[i];", "if (best == nullptr || cursors_[i]->sequence > (*best)->sequence) best = &cursors_[i];", "entries match in the wrong order"),
    (CORE + "matching/keyed_header_index.cc", "links_of(links.previous_of_key).next_of_key = following;", "", "an unexpected header is found after its end"),
    (CORE + "matching/unexpected_list.cc", "entry.next_to_add = pool_.header(number).in_list.next;", "{}", "the index follows a header that is gone"),
    (CORE + "events/event_queue.h", "one_event - (reserved ? 1 : 0)", "one_event - (reserved ? 0 : 0)", "reservations leak"),
    (CORE + "progress/passing_policy.h", "if (waits) is_over |= wait.end();", "if (waits) static_cast<void>(wait.end());", "the event of a round without work is lost"),
    (CORE + "events/event_queue.h", "const uint64_t kept = reserved + ring.flow_control_slots.load(std::memory_order_relaxed);", "const uint64_t kept = reserved;", "PTL_EVENT_PT_DISABLED overwrites an event"),
    (CORE + "events/counting_event.cc", "next_threshold_.store(next, std::memory_order_relaxed);\n  if (firing_) {", "if (firing_) {", "a threshold stays behind its operations"),
    (CORE + "events/counting_event.cc", "const uint64_t value = success_.load(std::memory_order_seq_cst);\n    if (value >= threshold) {", "const uint64_t value = 0;\n    if (value >= threshold) {", "an operation whose threshold is reached waits"),
    (CORE + "events/counting_event.cc", "if (count.target->handle.generation() == operation->target_generation)\n          count.target->set", "count.target->set", "a freed counter is set"),
    (CORE + "events/trigger_queue.h", "if (first_ == nullptr || last_->threshold <= operation.threshold) {", "if (first_ == nullptr || last_->threshold < operation.threshold + 2) {", "operations fire in the wrong order"),
    # requests
    (CORE + "objects/delivery.cc", "if (entry.state != EntryState::unlinked || entry.operations != 0) {", "if (entry.state != EntryState::unlinked) {", "an entry ends before its messages"),
    (CORE + "objects/delivery.cc", "--entry.unexpected_headers;", "", "PTL_EVENT_AUTO_FREE never comes"),
    (CORE + "objects/memory_region.cc", "const uint64_t bytes = std::min<uint64_t>(element.iov_len - position.within, length - sum);", "const uint64_t bytes = std::min<uint64_t>(element.iov_len, length - sum);", "a piece reaches beyond its element"),
    (CORE + "operations/target.cc", "if (is_atomic(header.kind)) mlength -=", "if (is_atomic(header.kind) && mlength == 0) mlength -=", "an atomic ends within an item"),
    (CORE + "operations/target.cc", "return PTL_ME_OP_PUT | PTL_ME_OP_GET;", "return PTL_ME_OP_PUT;", "a swap needs no permission to read"),
    (CORE + "operations/target.cc", "available_at(entry, placement_offset(entry, header)) >= header.length();", "available_at(entry, placement_offset(entry, header)) + 1 >= header.length();", "PTL_ME_NO_TRUNCATE truncates by a byte"),
    (CORE + "operations/operation_table.h", "operation.generation.store((generation + 1) & generation_mask, std::memory_order_relaxed);", "operation.generation.store(generation & generation_mask, std::memory_order_relaxed);", "a late answer ends another operation"),
    (CORE + "operations/initiator_answers.cc", "if (get == nullptr || header.remote_offset > length ||", "if (get == nullptr ||", "a reply writes outside its memory"),
    (CORE + "operations/initiator_answers.cc", "operation->stage.load(std::memory_order_acquire) == Operation::Stage::sent)\n      return operation;", "true)\n      return operation;", "an answer counts before its request was sent"),
    (CORE + "operations/initiator_answers.cc", "if (fail != PTL_NI_OK && header.hdr_data != 0) [[unlikely]]", "if (false)", "a dropped get is not told"),
    (CORE + "operations/transfer_table.cc", "--peer.long_messages.transfers;", "", "the share of a peer leaks"),
    (CORE + "operations/peer.h", "return taken < std::min(most, capacity - in_use);", "return taken <= std::min(most, capacity - in_use);", "a peer takes more than its share"),
    (CORE + "operations/awaited_puts.h", "if (record.descriptor_.load(std::memory_order_acquire) != nullptr || put.length > most_bytes)", "if (put.length > most_bytes)", "an awaited put takes the place of another"),
    # verbs
    (VERBS + "completions.cc", "if (completion.byte_len < sizeof header) return refuse(buffer);", "", "a short message is read beyond its end"),
    (VERBS + "completions.cc", "receives_.give_back(buffers_[i]);", "if (i != 0) receives_.give_back(buffers_[i]);", "receive buffers leak"),
    (VERBS + "completions.cc", "(invalidates || header.link_word == payload_bytes)", "(invalidates || header.link_word >= payload_bytes)", "a wrong length is believed"),
    (VERBS + "send_queue.cc", "if (++unsignalled_ >= signal_interval || signalled) {", "if (signalled) {", "the send queue is never released"),
    (VERBS + "send_queue.cc", "held_[i].next = i + 1 < count ? &held_[i + 1] : nullptr;", "held_[i].next = i + 2 < count ? &held_[i + 1] : nullptr;", "the last request of a chain is not posted"),
    # GASNet
    ("gasnet/am/credits.cc", "if (before == 0) list(rank);", "if (before == 1) list(rank);", "credits are not returned"),
    ("gasnet/am/credits.cc", "return most;\n}", "return count;\n}", "more credits are returned than fit"),
    ("gasnet/am/near_ring.h", "slot.turn.store(full_turn + 1, std::memory_order_release);", "slot.turn.store(full_turn, std::memory_order_release);", "slots are never free again"),
    (CORE + "operations/target.cc", "HeldMessages::find(arrival.peer, arrival.portal) != nullptr)", "false)", "a message passes held ones"),
    (CORE + "objects/append_entry.h", "        interface.note_room();\n", "", "held messages are not delivered"),
    (CORE + "operations/send_queues.cc", "  while (peer.queue.stopped.first != nullptr) go_on(peer, *peer.queue.stopped.first);\n", "", "requests to a dead peer that holds messages never end"),
    ("gasnet/coll/node_stage.cc", "if (lacks(finished, least)) least = finished;", "static_cast<void>(finished);", "a slot is used before its readers have finished"),
    ("gasnet/coll/team_collectives.cc", "call.number - halves_over_ * kHalf >= kSlots - kOverlap)\n    return false;", "false)\n    return false;", "leaders overrun each other's slots"),
    ("gasnet/coll/team_collectives.cc", "std::swap(combined, next);", "", "contributions are combined with the wrong one"),
    ("gasnet/coll/barrier.cc", "largest_of_two().combine(&waited, &with_waited, 2);", "static_cast<void>(waited);", "the name in a wait is not compared"),
)]
