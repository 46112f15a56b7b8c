// A module of a version that does not exist.
#include "util/module.h"

const lintel::Module lintel_module{"0.0.0", "an offer"};
