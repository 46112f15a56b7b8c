// A shared object that is not a module.
extern "C" int lintel_something_else() { return 1; }
