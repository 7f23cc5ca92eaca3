package encryption

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"
)

// Reload uses the new content of the file of the configuration, data, for what is read
// and written from then on. It reports whether that differs from what was in force: after
// a change, values that could not be read may be readable. If it returns an error, which
// is one line that names the file, the former configuration stays.
//
// It asks the KMS plugins that data names, each for as long as its timeout or until ctx
// ends; that one does not answer is no error. Concurrent calls take turns.
func (s *Store) Reload(ctx context.Context, data []byte) (changed bool, err error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	former := s.rules.Load()
	if s.ctx.Err() != nil {
		return false, errors.New("the encrypted store is closed")
	}
	if sha256.Sum256(data) == former.config.sum {
		return false, nil
	}
	config, err := parseConfig(former.config.path, data, former.config.reload)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)() // Close does not wait for plugins
	next, err := s.newRules(ctx, config)
	if err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		next.close()
		return false, ctx.Err()
	}
	s.rules.Store(next)
	s.running.Go(func() { former.retire(s.ctx) })
	return true, nil
}

// retire closes the connections to the plugins when calls that began before the rules
// were replaced have ended, or when ctx ends.
func (r *rules) retire(ctx context.Context) {
	var grace time.Duration
	for _, p := range r.plugins {
		grace += 2 * p.timeout
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	r.close()
}
