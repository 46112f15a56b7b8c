// Finds the secret of a job. Set-up path.
#pragma once

#include <string>

namespace lintel {

// Keeps a key that the program chose: before PTL_JOB_KEY and PTL_JOB_KEY_FILE, also after a reload
// of the configuration. Readers of PTL_JOB_KEY in the configuration see it at once.
void choose_job_key(std::string key);

// After each reload of the configuration: puts the key where readers of PTL_JOB_KEY see it. False,
// with a line in the log, if a key was requested and cannot be read.
[[nodiscard]] bool settle_job_key();

}  // namespace lintel
