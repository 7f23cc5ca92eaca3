package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/proxy"
	"github.com/levelwire/levelwire/server/internal/apiserver/reauthorization"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
)

// maxProxied bounds the open requests to aggregated servers that need not end: one user
// has a share of them.
const maxProxied = 20_000

// aggregated returns the aggregated server of a request, or nil.
func (s *Server) aggregated(t *target, path string) *aggregation.Server {
	if t.onObjects {
		if t.path.Group == "" {
			return nil
		}
		return s.config.Aggregator.Server(t.path.Group, t.path.Version)
	}
	path = strings.TrimSuffix(path, "/")
	if below, ok := strings.CutPrefix(path, proxy.OpenAPIv3Path); ok {
		path = "/" + below
	}
	if parts := strings.Split(path, "/"); len(parts) == 4 && parts[1] == "apis" {
		return s.config.Aggregator.Server(parts[2], parts[3])
	}
	return nil
}

// serveAggregated authorizes a request and passes it on to its aggregated server.
func (s *Server) serveAggregated(w http.ResponseWriter, r *http.Request, t *target) {
	if err := s.authorizeTarget(r, t); err != nil {
		writeDenied(w, r, err)
		return
	}
	s.forward(w, r, t)
}

// forward passes a request on to its other server.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, t *target) {
	var err error
	record := request.RecordFrom(r.Context())
	switch {
	case slices.ContainsFunc(strings.Split(r.URL.Path, "/"), func(part string) bool { return part == "." || part == ".." }):
		err = status.NoSuchPath() // servers resolve such paths to others than what was authorized
	case strings.Contains(strings.Join(r.Header.Values("Via"), ","), s.via):
		err = apierrors.NewServiceUnavailable("the request has come back to this server: the address of the server that answers it leads here")
	case !proxy.FitsHeaders(t.attributes.User):
		err = apierrors.NewForbidden(schema.GroupResource{Group: t.path.Group, Resource: t.path.Plural}, t.path.Name,
			errors.New("the user's name is empty, or it, the uid, a group or an extra value begins or ends with a space or has control characters: the server that answers would take it for another user"))
	default:
		err = t.server.Unavailable()
		record.Known = err != nil // the aggregator logs when that begins, and when it ends
	}
	if err == nil && t.isLong(r) {
		err = s.passOnLong(w, r, t)
	} else if err == nil {
		err = s.passOnShort(w, r, t)
	}
	if err != nil {
		encoding.WriteError(w, r, err)
	}
}

// passOnShort passes on a request that ends by itself, with its whole body: a client that
// sends it slowly holds nothing of the aggregated server. While that is silent, the
// request's seats are given back.
func (s *Server) passOnShort(w http.ResponseWriter, r *http.Request, t *target) error {
	if r.Body != nil && r.Body != http.NoBody {
		body, err := encoding.ReadBody(w, r, s.config.MaxBodyBytes)
		if err != nil {
			return err
		}
		r = r.Clone(r.Context())
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody() // never fails
		r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	}
	s.proxy.Pass(w, r, proxy.Request{Server: t.server, User: t.attributes.User, Kind: aggregation.Short, Slot: t.slot})
	return nil
}

// passOnLong passes on a watch, or a request that becomes another protocol, until the
// client or the aggregated server ends it, a right that it needs is withdrawn, or this
// server stops.
func (s *Server) passOnLong(w http.ResponseWriter, r *http.Request, t *target) error {
	if s.isStopping() {
		return status.ShuttingDown()
	}
	user := t.attributes.User
	if !s.proxied.TryAcquire(user, 1) {
		s.metrics.Rejected.Inc()
		return status.TooManyRequests("too many watches of aggregated servers are open, of this user or of all: close some", 1)
	}
	defer s.proxied.Release(user, 1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	ended := &endedWatch{end: cancel}
	go func() {
		select {
		case <-s.stopping:
			ended.Withdrawn()
		case <-ctx.Done():
		}
	}()
	if s.open != nil && t.onObjects {
		var member reauthorization.Member
		record := request.RecordFrom(ctx)
		s.open.Register(ctx, &member, ended, reauthorization.Rights{Watch: &t.attributes, Impersonation: record.Impersonation})
		defer s.open.Unregister(&member)
		if err := member.Err(); err != nil { // withdrawn since the request was authorized
			return err
		}
	}
	kind := aggregation.Long
	if proxy.IsUpgrade(r) {
		kind = aggregation.Upgrade
	} else if r.ProtoMajor == 1 && r.ContentLength != 0 {
		if err := encoding.DiscardBody(w, r, s.config.MaxBodyBytes); err != nil {
			return err
		}
	}
	r = r.Clone(ctx)
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
	s.proxy.Pass(w, r, proxy.Request{Server: t.server, User: user, Kind: kind, Slot: t.slot, Ended: ended.done.Load})
	return nil
}

// endedWatch is a request that this server may end.
type endedWatch struct {
	end  context.CancelFunc
	done atomic.Bool
}

// Withdrawn implements reauthorization.Watch.
func (e *endedWatch) Withdrawn() {
	e.done.Store(true)
	e.end()
}
