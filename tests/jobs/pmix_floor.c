/* Joins a job through PMIx and does nothing else: shows the time that the launcher needs. */
#include <pmix.h>

int main(void) {
  pmix_proc_t self;
  bool yes = true;
  pmix_info_t collect;
  if (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS) return 1;
  PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  const pmix_status_t status = PMIx_Fence(NULL, 0, &collect, 1);
  PMIx_Finalize(NULL, 0);
  return status == PMIX_SUCCESS ? 0 : 1;
}
