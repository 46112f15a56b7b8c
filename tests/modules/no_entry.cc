// A shared object that is no module.
extern "C" int lintel_something_else() { return 1; }
