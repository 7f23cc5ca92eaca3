package h2

import (
	"errors"
	"fmt"

	"golang.org/x/net/http2"
)

// Why a stream's body cannot be read and nothing can be sent on it.
var (
	errReset      = errors.New("h2: the client has reset the stream")
	errBroken     = errors.New("h2: the client broke the rules of HTTP/2 on the stream, which was reset")
	errConnClosed = errors.New("h2: the client's connection is closed")
	errEvicted    = errors.New("h2: the connection, whose client is not authenticated, takes too much memory")
	errSilent     = errors.New("h2: the client has not answered a ping")
)

// connError ends a connection: a GOAWAY frame reports it to the client (RFC 9113
// section 5.4.1).
type connError struct {
	code   http2.ErrCode
	reason string
}

func (e connError) Error() string { return fmt.Sprintf("%s (%v)", e.reason, e.code) }

// streamError ends one stream: a RST_STREAM frame reports it to the client
// (RFC 9113 section 5.4.2).
type streamError struct {
	code   http2.ErrCode
	reason string
}

func (e streamError) Error() string { return fmt.Sprintf("%s (%v)", e.reason, e.code) }
