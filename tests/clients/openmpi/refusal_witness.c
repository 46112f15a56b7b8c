// Preloaded into a rank whose messages use Open MPI's MTL. It observes the calls of the component
// and their results. It ends the rank when a message is refused for the second time by a portal
// table entry that flow control has disabled (Portals 4.3, section 2.7). The MTL overlooks that
// refusal, so the message is lost (docs/porting.md). If a flood fails for another reason, the
// library is at fault.
//
// The component is unmodified: its calls reach this file first, which forwards them to the library.
// In these programs one thread of each rank calls Portals.
#include <dlfcn.h>
#include <portals4.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { places = 1 << 16, exit_code = 87 };

// The last put for a request, and how often it was refused.
struct message {
  void* request;
  ptl_hdr_data_t header_data;  // contains the number of the message; the same when it is sent again
  unsigned refusals;
};
static struct message messages[places];

static struct message* message_of(void* request) {
  size_t place = (size_t)((uintptr_t)request * UINT64_C(0x9E3779B97F4A7C15) >> 48);
  for (size_t tries = 0; tries < places; ++tries, place = (place + 1) % places)
    if (messages[place].request == request || messages[place].request == NULL)
      return &messages[place];
  fprintf(stderr, "refusal witness: more than %d requests; make `places` larger\n", places);
  abort();
}

// The component has loaded the library with local symbols.
static void* next(const char* name) {
  void* library = dlopen("libportals.so.4", RTLD_NOW | RTLD_NOLOAD);
  void* found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) {
    fprintf(stderr, "refusal witness: no %s in the loaded libportals.so.4\n", name);
    abort();
  }
  return found;
}

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
           ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
           ptl_hdr_data_t hdr_data) {
  static __typeof__(&PtlPut) put;
  if (put == NULL) put = (__typeof__(put))next("PtlPut");
  if (user_ptr != NULL) {
    struct message* message = message_of(user_ptr);
    if (message->request == NULL || message->header_data != hdr_data) {
      message->request = user_ptr;
      message->header_data = hdr_data;
      message->refusals = 0;
    }
  }
  return put(md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits,
             remote_offset, user_ptr, hdr_data);
}

int PtlEQPoll(const ptl_handle_eq_t* eq_handles, unsigned int size, ptl_time_t timeout,
              ptl_event_t* event, unsigned int* which) {
  static __typeof__(&PtlEQPoll) poll;
  if (poll == NULL) poll = (__typeof__(poll))next("PtlEQPoll");
  const int code = poll(eq_handles, size, timeout, event, which);
  if (code == PTL_OK && event->type == PTL_EVENT_ACK && event->ni_fail_type == PTL_NI_PT_DISABLED &&
      event->user_ptr != NULL && ++message_of(event->user_ptr)->refusals == 2) {
    fprintf(stderr, "refusal witness: a message was refused twice\n");
    _Exit(exit_code);
  }
  return code;
}
