// Descriptors that a forked child must not keep: it would hold the ports of its parent. Set-up
// path.
#pragma once

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

// Closes the descriptor in every child that this process forks from now on. Thread-safe. A few
// dozen descriptors at most; others stay open in children.
void close_in_children(int descriptor) noexcept;
// Before it is closed here.
void forget_in_children(int descriptor) noexcept;

}  // namespace lintel
#pragma GCC visibility pop
