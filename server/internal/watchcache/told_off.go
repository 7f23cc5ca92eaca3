//go:build !invariants

package watchcache

import "github.com/levelwire/levelwire/storage"

// told is empty in builds that do not check invariants, and these methods are no code.
type told struct{}

func (w *Watcher) beginTold(storage.Revision)    {}
func (w *Watcher) tellInitial([]Event, int)      {}
func (w *Watcher) endInitialTold(bool)           {}
func (w *Watcher) tell([]Event, int, bool)       {}
func (w *Watcher) tellBookmark(storage.Revision) {}
func (w *Watcher) compareTold()                  {}
