/* environment.h: the environment that gasnett_getenv reads. Set-up path.
 *
 * There are three layers: the changes by gasnett_setenv in this process, the environment of the job
 * (that of rank 0), the environment of the process. The first layer that has a variable is used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_TOOLS_ENVIRONMENT_H
#define LINTEL_GASNET_TOOLS_ENVIRONMENT_H

#include <cstddef>
#include <string>

namespace lintel::gasnet {

/** The environment of this process as text: each "NAME=value" ends with a zero byte. */
std::string serialise_environment();

/** Sets the environment of the job to a text of serialise_environment(), that of rank 0.
 * @param text  copied. */
void set_job_environment(const char* text, size_t bytes);

/** Enables reports of settings (GASNET_VERBOSEENV). Only one process of the job reports. */
void set_environment_reports(bool enabled);
/** Reports the variables of variables.h that were not reported yet, and unknown ones. */
void report_other_variables();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_TOOLS_ENVIRONMENT_H
