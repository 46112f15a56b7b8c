// A module of a version that never was.
#include "util/module.h"

const lintel::Module lintel_module{"0.0.0", "an offer"};
