package h2

import (
	"encoding/binary"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// maxSettings is how many settings one frame may hold. A dozen are defined.
const maxSettings = 128

// settingsFrame applies the client's settings and acknowledges them (RFC 9113
// section 6.5).
func (c *conn) settingsFrame(h frame.Header) error {
	if h.Stream != 0 {
		return connError{http2.ErrCodeProtocol, "a SETTINGS frame on a stream"}
	}
	if h.Has(http2.FlagSettingsAck) {
		if h.Length != 0 {
			return connError{http2.ErrCodeFrameSize, "an acknowledgement of SETTINGS with a payload"}
		}
		c.settingsAcked()
		return c.countAbusiveFrame()
	}
	if h.Length%6 != 0 {
		return connError{http2.ErrCodeFrameSize, "a SETTINGS frame of the wrong size"}
	}
	if h.Length > 6*maxSettings {
		return connError{http2.ErrCodeEnhanceYourCalm, "too many settings"}
	}
	if err := c.countAbusiveFrame(); err != nil {
		return err
	}
	b, err := c.in.next(int(h.Length))
	if err != nil {
		return noEOF(err)
	}
	c.mu.Lock()
	for ; len(b) > 0 && err == nil; b = b[6:] {
		err = c.setting(http2.SettingID(binary.BigEndian.Uint16(b)), binary.BigEndian.Uint32(b[2:]))
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.appendAck(func(b []byte) []byte {
		return frame.AppendHeader(b, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	})
}

// setting applies one of the client's settings. c.mu is held.
func (c *conn) setting(id http2.SettingID, value uint32) error {
	switch id {
	case http2.SettingHeaderTableSize:
		c.encoder.SetMaxDynamicTableSizeLimit(min(value, headerTable))
		c.encoder.SetMaxDynamicTableSize(min(value, headerTable))
	case http2.SettingEnablePush:
		if value > 1 {
			return connError{http2.ErrCodeProtocol, "SETTINGS_ENABLE_PUSH must be 0 or 1"}
		}
	case http2.SettingInitialWindowSize:
		if value > frame.MaxWindow {
			return connError{http2.ErrCodeFlowControl, "SETTINGS_INITIAL_WINDOW_SIZE is too large"}
		}
		return c.changeWindows(int64(value))
	case http2.SettingMaxFrameSize:
		if value < frame.DefaultSize || value > 1<<24-1 {
			return connError{http2.ErrCodeProtocol, "SETTINGS_MAX_FRAME_SIZE is out of range"}
		}
		c.peerFrameSize = int(value)
	}
	return nil
}

// changeWindows applies a new initial size to the windows of all streams. They
// may become negative (RFC 9113 section 6.9.2).
func (c *conn) changeWindows(initial int64) error {
	delta := initial - c.initialWindow
	c.initialWindow = initial
	for _, st := range c.streams {
		if st.sendWindow += delta; st.sendWindow > frame.MaxWindow {
			return connError{http2.ErrCodeFlowControl, "SETTINGS_INITIAL_WINDOW_SIZE makes a window too large"}
		}
		st.canSend.wake()
	}
	return nil
}
