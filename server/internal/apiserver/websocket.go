package apiserver

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
	socketBinary = "binary.k8s.io"
	socketBase64 = "base64.binary.k8s.io" // text messages, in base64
)

const (
	// socketRead is how much a client may say at once. It has nothing to say.
	socketRead   = 4 << 10
	socketBuffer = 4 << 10
	// socketGoodbye is how long the last message may take.
	socketGoodbye = time.Second
)

// socket is the outlet of a watch over WebSocket: a message for each event.
type socket struct {
	conn   *websocket.Conn
	kind   int // of the messages
	base64 bool
	skip   int           // bytes before each event that only a stream needs
	limit  time.Duration // of one write
	record *request.Record
}

// openSocket answers the handshake. Its errors are for an HTTP answer.
func (s *Server) openSocket(w http.ResponseWriter, r *http.Request, form encoding.Form) (*socket, error) {
	upgrader := websocket.Upgrader{
		ReadBufferSize: socketBuffer, WriteBufferSize: socketBuffer, HandshakeTimeout: s.config.WriteTimeout,
		Subprotocols: []string{socketBase64, socketBinary},
		Error:        func(http.ResponseWriter, *http.Request, int, error) {}, // the caller answers
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil, status.BadRequest("this WebSocket cannot be opened: %v", err)
	}
	conn.SetReadLimit(socketRead)
	k := &socket{conn: conn, kind: websocket.BinaryMessage, limit: s.config.WriteTimeout, record: request.RecordFrom(r.Context())}
	k.base64 = conn.Subprotocol() == socketBase64
	if k.base64 || form.Media == encoding.JSON && conn.Subprotocol() == "" {
		k.kind = websocket.TextMessage
	}
	if form.Media == encoding.Protobuf {
		k.skip = protobufFrameHead
	}
	k.record.Code = http.StatusSwitchingProtocols
	return k, nil
}

// protobufFrameHead is the length that precedes an event in a stream.
const protobufFrameHead = 4

// begin implements outlet: the handshake was the beginning.
func (k *socket) begin(string) {}

// single implements outlet.
func (k *socket) single() bool { return true }

// flush implements outlet: messages are sent at once.
func (k *socket) flush() error { return nil }

// write implements outlet.
func (k *socket) write(event []byte) error {
	event = event[k.skip:]
	if k.base64 {
		event = base64.StdEncoding.AppendEncode(nil, event)
	}
	if err := k.conn.SetWriteDeadline(time.Now().Add(k.limit)); err != nil {
		return err
	}
	k.record.Written += int64(len(event))
	return k.conn.WriteMessage(k.kind, event)
}

// listen reads what the client sends, so that pings are answered, and cancels
// when it has gone or says goodbye.
func (k *socket) listen(cancel context.CancelFunc) {
	defer cancel()
	for {
		if _, _, err := k.conn.NextReader(); err != nil {
			return
		}
	}
}

// close says goodbye and ends the connection, and so listen.
func (k *socket) close() {
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	// Whether it arrives makes no difference.
	_ = k.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(socketGoodbye))
	_ = k.conn.Close()
}

// watchSocket runs a watch over WebSocket until either side has had enough.
func (s *Server) watchSocket(w http.ResponseWriter, r *http.Request, stream *watchStream) error {
	k, err := s.openSocket(w, r, stream.framer.Form())
	if err != nil {
		return err
	}
	if !s.sockets.add(k) {
		k.close()
		return nil
	}
	defer s.sockets.remove(k)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stream.out, stream.ctx = k, ctx
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		k.listen(cancel)
	}()
	defer func() {
		k.close()
		<-heard
	}()
	stream.run()
	return nil
}

// sockets are the open WebSockets. net/http forgets them when they are opened,
// so a drain has to wait for them here.
type sockets struct {
	mu       sync.Mutex
	open     map[*socket]struct{}
	draining bool
	done     sync.WaitGroup
}

// add is false if the server drains.
func (s *sockets) add(k *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	if s.open == nil {
		s.open = map[*socket]struct{}{}
	}
	s.open[k] = struct{}{}
	s.done.Add(1)
	return true
}

func (s *sockets) remove(k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, k)
	s.done.Done()
}

// drain waits until the streams, which have been told, have ended; those that
// have not when ctx ends lose their connections.
func (s *sockets) drain(ctx context.Context) {
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
