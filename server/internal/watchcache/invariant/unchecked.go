//go:build !invariants

package invariant

// Checked says whether the build checks its invariants. It is a constant: what it guards costs
// other builds nothing.
const Checked = false
