package auth

import "sync"

// ChangeNotifier is an Authorizer whose decisions change, and that reports when. Its
// method is called concurrently.
//
// An Authorizer that asks others in turn passes OnChange on to them (see OnChange). One
// that cannot know when its decisions change, such as one that asks a webhook, calls the
// functions at an interval.
type ChangeNotifier interface {
	// OnChange has changed called after decisions may have changed, until stop is
	// called: a decision that is made after the call of changed is no older than the
	// change. user is the name of the user about whom decisions may have changed, or ""
	// if they may have about any. changed may be called by several goroutines, and in
	// vain. It does not wait for anything, nor asks for decisions. stop is nil if decisions
	// never change.
	OnChange(changed func(user string)) (stop func())
}

// OnChange has changed called after decisions of any of the authorizers may have changed,
// until stop is called. stop is nil if none of them is a ChangeNotifier whose decisions
// change.
func OnChange(changed func(user string), authorizers ...Authorizer) (stop func()) {
	var stops []func()
	for _, a := range authorizers {
		if notifier, ok := a.(ChangeNotifier); ok {
			if one := notifier.OnChange(changed); one != nil {
				stops = append(stops, one)
			}
		}
	}
	if len(stops) == 0 {
		return nil
	}
	return func() {
		for _, one := range stops {
			one()
		}
	}
}

// Changes are the functions that a ChangeNotifier calls. The zero value has none. It is
// safe for concurrent use.
type Changes struct {
	mu        sync.Mutex // no other lock is taken while it is held, but those of the functions
	functions map[*func(user string)]struct{}
}

// OnChange implements ChangeNotifier.
func (c *Changes) OnChange(changed func(user string)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.functions == nil {
		c.functions = map[*func(user string)]struct{}{}
	}
	key := &changed
	c.functions[key] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.functions, key)
	}
}

// Notify calls the functions: decisions about any user may have changed. They must show
// the change before.
func (c *Changes) Notify() { c.NotifyUser("") }

// NotifyUser is Notify for a change that is about one user.
func (c *Changes) NotifyUser(user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for changed := range c.functions {
		(*changed)(user)
	}
}
