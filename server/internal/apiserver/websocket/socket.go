package websocket

import (
	"context"
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Subprotocols of a watch over WebSocket (RFC 6455). Without one, JSON comes
// in text messages and everything else in binary ones.
const (
	binaryProtocol = "binary.k8s.io"
	base64Protocol = "base64.binary.k8s.io" // text messages, in base64
)

const (
	// readLimit bounds a message of the client, which has nothing to send.
	readLimit  = 4 << 10
	bufferSize = 4 << 10
	// closeTimeout bounds the write of the closing message.
	closeTimeout = time.Second
)

// Socket writes the events of a watch to a WebSocket: a message for each event. It
// implements watchstream.EventWriter.
type Socket struct {
	conn   *websocket.Conn
	kind   int // of the messages
	base64 bool
	skip   int           // bytes before each event that only a stream needs
	limit  time.Duration // of one write
	record *request.Record
	slot   request.Slot // nil: writes are not guarded
}

// GuardWrites puts writes between the slot's two calls.
func (k *Socket) GuardWrites(slot request.Slot) { k.slot = slot }

// IsUpgrade reports whether a request asks for a WebSocket.
func IsUpgrade(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// open answers the handshake. Its errors are for an HTTP answer.
func open(w http.ResponseWriter, r *http.Request, form encoding.Form, writeTimeout time.Duration) (*Socket, error) {
	upgrader := websocket.Upgrader{
		ReadBufferSize: bufferSize, WriteBufferSize: bufferSize, HandshakeTimeout: writeTimeout,
		Subprotocols: []string{base64Protocol, binaryProtocol},
		Error:        func(http.ResponseWriter, *http.Request, int, error) {}, // the caller answers
	}
	header := w.Header().Clone() // what the server says with any answer, also that a watch is filtered
	header.Del("Connection")     // the handshake has its own
	conn, err := upgrader.Upgrade(w, r, header)
	if err != nil {
		return nil, status.BadRequest("this WebSocket cannot be opened: %v", err)
	}
	conn.SetReadLimit(readLimit)
	k := &Socket{conn: conn, kind: websocket.BinaryMessage, limit: writeTimeout, record: request.RecordFrom(r.Context())}
	k.base64 = conn.Subprotocol() == base64Protocol
	if k.base64 || form.Media == encoding.JSON && conn.Subprotocol() == "" {
		k.kind = websocket.TextMessage
	}
	if form.Media == encoding.Protobuf {
		k.skip = protobufFrameHead
	}
	k.record.Code = http.StatusSwitchingProtocols
	if k.record.Audit != nil {
		k.record.Audit.Started(http.StatusSwitchingProtocols)
	}
	return k, nil
}

// protobufFrameHead is the length that precedes an event in a stream.
const protobufFrameHead = 4

// Begin implements watchstream.EventWriter: the handshake was the beginning.
func (k *Socket) Begin(string, bool) {}

// Single implements watchstream.EventWriter.
func (k *Socket) Single() bool { return true }

// Flush implements watchstream.EventWriter: messages are sent at once.
func (k *Socket) Flush() error { return nil }

// Write implements watchstream.EventWriter.
func (k *Socket) Write(event []byte) error {
	event = event[k.skip:]
	if k.base64 {
		event = base64.StdEncoding.AppendEncode(nil, event)
	}
	if err := k.conn.SetWriteDeadline(time.Now().Add(k.limit)); err != nil {
		return err
	}
	k.record.Written += int64(len(event))
	if k.slot == nil {
		return k.conn.WriteMessage(k.kind, event)
	}
	k.slot.BeginWrite()
	err := k.conn.WriteMessage(k.kind, event)
	if e := k.slot.EndWrite(); err == nil {
		err = e
	}
	return err
}

// listen reads what the client sends, so that pings are answered, and cancels when
// the client has closed the WebSocket or the connection.
func (k *Socket) listen(cancel context.CancelFunc) {
	defer cancel()
	for {
		if _, _, err := k.conn.NextReader(); err != nil {
			return
		}
	}
}

// close sends the closing message and ends the connection, and so listen.
func (k *Socket) close() {
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	// The connection ends whether it arrives or not.
	_ = k.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(closeTimeout))
	_ = k.conn.Close()
}

// Serve opens a WebSocket and calls serve with it, which returns when the watch has
// ended. The context of serve ends when the client has gone. An error is for an
// HTTP answer. No write blocks longer than writeTimeout.
func (s *Sockets) Serve(w http.ResponseWriter, r *http.Request, form encoding.Form, writeTimeout time.Duration, serve func(context.Context, *Socket)) error {
	k, err := open(w, r, form, writeTimeout)
	if err != nil {
		return err
	}
	if !s.add(k) {
		k.close()
		return nil
	}
	defer s.remove(k)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		k.listen(cancel)
	}()
	defer func() {
		k.close()
		<-listened
	}()
	serve(ctx, k)
	return nil
}

// Sockets are the open WebSockets of a server. net/http forgets a connection that
// becomes a WebSocket, so a drain has to wait for it here. The zero value is ready.
type Sockets struct {
	mu       sync.Mutex
	open     map[*Socket]struct{}
	draining bool
	done     sync.WaitGroup
}

// add is false if the server drains.
func (s *Sockets) add(k *Socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	if s.open == nil {
		s.open = map[*Socket]struct{}{}
	}
	s.open[k] = struct{}{}
	s.done.Add(1)
	return true
}

func (s *Sockets) remove(k *Socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, k)
	s.done.Done()
}

// Drain waits until all watches have ended, which their streams were made to do. A
// watch that has not when ctx ends loses its connection.
func (s *Sockets) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for k := range s.open {
			_ = k.conn.Close()
		}
	})
	defer stop()
	s.done.Wait()
}
