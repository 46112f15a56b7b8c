// A module of this version, built with other headers.
#include "util/module.h"

const lintel::Module lintel_module{LINTEL_VERSION " build 0", "an offer"};
