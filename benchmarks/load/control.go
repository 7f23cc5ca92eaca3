package load

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// control implements frameHandler.
func (c *Conn) control(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) error {
	if c.headers.stream != 0 && kind != http2.FrameContinuation {
		return fmt.Errorf("%w: %s within a block of headers", errProtocol, kind)
	}
	short := func(n int) error {
		if len(payload) < n {
			return fmt.Errorf("%w: %s of %d bytes", errProtocol, kind, len(payload))
		}
		return nil
	}
	switch kind {
	case http2.FrameHeaders, http2.FrameContinuation:
		return c.header(kind, flags, stream, payload)
	case http2.FrameSettings:
		return c.setting(flags, payload)
	case http2.FrameWindowUpdate:
		if err := short(4); err != nil {
			return err
		}
		return c.opened(stream, int(binary.BigEndian.Uint32(payload)&maxWindow))
	case http2.FramePing:
		if err := short(8); err != nil || flags.Has(http2.FlagPingAck) {
			return err
		}
		c.mu.Lock()
		if err := c.framer.WritePing(true, [8]byte(payload)); err != nil {
			c.mu.Unlock()
			return err
		}
		return c.flush()
	case http2.FrameRSTStream:
		if err := short(4); err != nil {
			return err
		}
		c.remove(stream, fmt.Errorf("the server reset the stream: %s", http2.ErrCode(binary.BigEndian.Uint32(payload))))
	case http2.FrameGoAway:
		if err := short(8); err != nil {
			return err
		}
		// Streams that it has begun to answer go on until it closes.
		_ = c.fail(fmt.Errorf("the server goes away: %s %q", http2.ErrCode(binary.BigEndian.Uint32(payload[4:])), payload[8:]))
	case http2.FramePushPromise:
		return fmt.Errorf("%w: it pushes", errProtocol)
	}
	return nil // Unknown kinds are ignored (RFC 9113, section 4.1).
}

// maxTable is HTTP/2's default size of the compression table.
const maxTable = 4096

// setting takes over what the server allows.
func (c *Conn) setting(flags http2.Flags, payload []byte) error {
	if flags.Has(http2.FlagSettingsAck) {
		return nil
	}
	if len(payload)%6 != 0 {
		return fmt.Errorf("%w: settings of %d bytes", errProtocol, len(payload))
	}
	c.mu.Lock()
	for ; len(payload) > 0; payload = payload[6:] {
		value := int(binary.BigEndian.Uint32(payload[2:]))
		switch http2.SettingID(binary.BigEndian.Uint16(payload)) {
		case http2.SettingMaxConcurrentStreams:
			c.maxStreams = value
		case http2.SettingMaxFrameSize:
			c.maxFrame = value
		case http2.SettingHeaderTableSize:
			// Levelwire allows none before it knows the client.
			c.fields.SetMaxDynamicTableSize(uint32(min(value, maxTable)))
		case http2.SettingInitialWindowSize:
			for _, s := range c.streams {
				s.window += value - c.firstWin
			}
			c.firstWin = value
		}
	}
	if err := c.framer.WriteSettingsAck(); err != nil {
		c.mu.Unlock()
		return err
	}
	select {
	case <-c.settled:
	default:
		close(c.settled)
	}
	if err := c.writeBodies(); err != nil {
		c.mu.Unlock()
		return err
	}
	return c.flush()
}

// opened: the server has opened a window for sending.
func (c *Conn) opened(stream uint32, by int) error {
	c.mu.Lock()
	if stream == 0 {
		c.window += by
	} else if s := c.streams[stream]; s != nil {
		s.window += by
	}
	if err := c.writeBodies(); err != nil {
		c.mu.Unlock()
		return err
	}
	return c.flush()
}

// headers gathers one block of them.
type headers struct {
	decoder *hpack.Decoder
	stream  uint32 // whose block is incomplete; 0: none's
	last    bool   // nothing follows on the stream
	fields  []hpack.HeaderField
}

func (h *headers) init() {
	h.decoder = hpack.NewDecoder(4096, func(f hpack.HeaderField) { h.fields = append(h.fields, f) })
	h.decoder.SetMaxStringLength(maxControl)
}

func (c *Conn) header(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) error {
	h := &c.headers
	switch {
	case kind == http2.FrameContinuation && (h.stream == 0 || stream != h.stream):
		return fmt.Errorf("%w: CONTINUATION of nothing", errProtocol)
	case kind == http2.FrameHeaders:
		h.stream, h.last, h.fields = stream, flags.Has(http2.FlagHeadersEndStream), h.fields[:0]
		var err error
		if payload, err = strip(flags, payload); err != nil {
			return err
		}
	}
	if _, err := h.decoder.Write(payload); err != nil {
		return fmt.Errorf("%w: %w", errProtocol, err)
	}
	if !flags.Has(http2.FlagHeadersEndHeaders) {
		return nil
	}
	h.stream = 0
	if err := h.decoder.Close(); err != nil {
		return fmt.Errorf("%w: %w", errProtocol, err)
	}
	return c.answer(stream)
}

// strip takes padding and priority off a HEADERS frame (RFC 9113, section 6.2).
func strip(flags http2.Flags, payload []byte) ([]byte, error) {
	padding, skip := 0, 0
	if flags.Has(http2.FlagHeadersPadded) {
		if len(payload) == 0 {
			return nil, fmt.Errorf("%w: HEADERS without the length of its padding", errProtocol)
		}
		padding, skip = int(payload[0]), 1
	}
	if flags.Has(http2.FlagHeadersPriority) {
		skip += 5
	}
	if skip+padding > len(payload) {
		return nil, fmt.Errorf("%w: more padding than payload", errProtocol)
	}
	return payload[skip : len(payload)-padding], nil
}

// answer hands a complete block of headers on. A second one is a trailer, which
// is dropped.
func (c *Conn) answer(id uint32) error {
	c.mu.Lock()
	s := c.streams[id]
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	if !s.answered {
		status := 0
		for _, f := range c.headers.fields {
			if f.Name == ":status" {
				status, _ = strconv.Atoi(f.Value) // 0 is refused below.
			}
		}
		switch {
		case status < 100:
			return fmt.Errorf("%w: an answer without a status: %s", errProtocol, names(c.headers.fields))
		case status >= 200:
			s.answered = true
			s.to.Answer(status, c.headers.fields)
		}
	}
	if c.headers.last {
		c.remove(id, nil)
	}
	return nil
}

func names(fields []hpack.HeaderField) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(f.Name + " ")
	}
	return b.String()
}
