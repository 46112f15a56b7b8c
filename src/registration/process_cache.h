// The registration cache of this process, set up as the configuration says. Set-up path.
#pragma once

#include "registration/registration.h"

namespace lintel {

// Lives until the process ends. Watches over memory only while something is attached.
[[nodiscard]] RegistrationCache& process_registration_cache();

}  // namespace lintel
