/* environment.h: the environment that gasnett_getenv sees. Set-up path.
 *
 * Three layers, of which the first that has a variable wins: what gasnett_setenv changed in this
 * process, the environment of the job (that of rank 0), the environment of the process.
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

/** Makes a text of serialise_environment, that of rank 0, the environment of the job.
 * @param text  copied. */
void set_job_environment(const char* text, size_t bytes);

/** Lets settings be reported (GASNET_VERBOSEENV) on one process of the job only. */
void set_environment_reports(bool enabled);
/** Reports the variables of variables.h that have not been, and those that are unknown. */
void report_other_variables();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_TOOLS_ENVIRONMENT_H
