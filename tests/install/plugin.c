/* A C11 program that loads the installed library like a plug-in, uses it and closes it. A later
 * fault must reach the program's own handler. */
#include <dlfcn.h>
#include <portals4.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static sigjmp_buf after_fault;

static void on_fault(int signal_number) { siglongjmp(after_fault, signal_number); }

static void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

/* C does not permit conversions between function pointers and data pointers. */
static void find(void* library, const char* name, void* function) {
  void* found = dlsym(library, name);
  if (found == NULL) fail(dlerror());
  memcpy(function, &found, sizeof found);
}

static void use_library(const char* path) {
  int (*init)(void);
  int (*open_interface)(ptl_interface_t, unsigned int, ptl_pid_t, const ptl_ni_limits_t*,
                        ptl_ni_limits_t*, ptl_handle_ni_t*);
  int (*close_interface)(ptl_handle_ni_t);
  void (*finish)(void);
  ptl_handle_ni_t ni;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail(dlerror());
  find(library, "PtlInit", &init);
  find(library, "PtlNIInit", &open_interface);
  find(library, "PtlNIFini", &close_interface);
  find(library, "PtlFini", &finish);
  if (init() != PTL_OK) fail("PtlInit");
  if (open_interface(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                     &ni) != PTL_OK)
    fail("PtlNIInit");
  if (close_interface(ni) != PTL_OK) fail("PtlNIFini");
  finish();
  if (dlclose(library) != 0) fail("dlclose");
}

int main(int argc, char** argv) {
  const size_t page = 4096;
  struct sigaction action;
  volatile char* nothing = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (argc != 2 || nothing == MAP_FAILED) fail("usage: plugin <library>");
  memset(&action, 0, sizeof action);
  action.sa_handler = on_fault;
  sigaction(SIGSEGV, &action, NULL);
  use_library(argv[1]);
  if (sigsetjmp(after_fault, 1) == 0) {
    *nothing = 1;
    fail("no fault");
  }
  return 0;
}
