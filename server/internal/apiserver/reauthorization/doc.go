// Package reauthorization decides again about open watches when decisions may have
// changed, and ends those whose rights were withdrawn.
//
// Watches that need the same rights of the same user form a group, about which is decided
// once: 100,000 watches of 100 users are 100 decisions. Run makes a pass after a change: over
// all groups, or over those of the users about whom decisions may have changed. Changes
// that come during a pass, or in the pause after it, share the
// next one, and the pauses bound the share of the processor that passes take.
//
// A right that is withdrawn while a watch opens ends it too, although the watch was
// authorized before it was registered. Register first puts the watch into its group, and
// then, unless the group existed, has the group decided. A change that is reported after
// that point starts a pass that finds the group. A change that was reported before shows in
// the decision that follows the registration, or, in a group that existed, starts a pass
// that has not decided about the group yet or that has: in the first case it finds the
// watch, and in the second the decision was made after the change. So between the change
// and the end of the watch there is always one decision that was made after both.
//
// A decision against a group counts only if no watch joined the group meanwhile. Otherwise
// a watch could be ended by a decision from before a grant that allowed it, so the decision
// is made once more.
//
// Locks: Watches.mu is held for as long as it takes to link or unlink a watch, or to copy
// the list of groups, and never while an authorizer or a watch is called.
package reauthorization
