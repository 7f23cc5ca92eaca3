package discovery

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/openapi"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// quietFor is how long nothing that is served has changed before the documents of OpenAPI are
// made in the background: definitions that are installed one after the other are described once,
// and servers of tests have often ended by then.
const quietFor = 2 * time.Second

// MakeDocuments makes documents of OpenAPI version 3 before clients ask for them, until ctx ends:
// one after the other, so that a request waits only for the one that it is about. changed returns
// a channel that is closed when the resources are others than at the call.
//
// What is made is what clients will probably ask for. A server that begins with custom kinds is
// the restarted one of a cluster that lives, and makes everything at once. Of definitions that
// come it makes the documents when there has been quiet, which takes a millisecond each. Those of
// the built-in kinds take some tenths of a second of processor time and some MiB, which a
// server whose clients never read them must not spend: they follow the first request for the list
// of all documents.
func (h *Handler) MakeDocuments(ctx context.Context, changed func() <-chan struct{}) {
	wait := quietFor
	if slices.ContainsFunc(h.config.Resources.All(), openapi.IsCustom) {
		wait = 0
		h.indexRead.Store(true)
	}
	for ctx.Err() == nil {
		next := changed()
		timer := time.NewTimer(wait)
		wait = quietFor
		select {
		case <-timer.C:
			h.makeDocuments(ctx, next)
		case <-next:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// makeDocuments makes what has not been made, and returns when the resources change.
func (h *Handler) makeDocuments(ctx context.Context, changed <-chan struct{}) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		// What cannot be made, requests are told of.
		d := h.described()
		if h.indexRead.Load() {
			_ = d.makeIndex(ctx)
			return
		}
		custom := slices.DeleteFunc(d.versions(), func(v *groupVersion) bool { return v.remote != nil || !v.isCustom() })
		_ = makeV3(ctx, custom...)
	}()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	stop()
	<-done
}

// shared has the documents of kinds with Go types for all servers of the process: programs of
// tests have hundreds of servers, one after the other. It has as many entries as there are
// such groups and versions, or a few times more if servers differ.
var shared = &sharedDocuments{made: make(map[string]*openAPIDocument)}

// maxShared bounds the entries, whatever servers differ in.
const maxShared = 1024

type sharedDocuments struct {
	mu   sync.Mutex
	made map[string]*openAPIDocument
}

// of returns the document of a version whose resources all servers of the process have that
// describe the same.
func (s *sharedDocuments) of(v *groupVersion) *openAPIDocument {
	if slices.ContainsFunc(v.resources, openapi.IsCustom) {
		return v.openAPI // its schema is this server's
	}
	key := v.outline()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[key] == nil {
		if len(s.made) >= maxShared {
			return v.openAPI
		}
		s.made[key] = v.openAPI
	}
	return s.made[key]
}

// outline says all that the document of a version with Go types depends on.
func (v *groupVersion) outline() string {
	var b strings.Builder
	fmt.Fprintln(&b, v.GroupVersion)
	for _, e := range v.described().Endpoints {
		fmt.Fprintln(&b, e.Plural, e.Kind, e.ListKind, e.Namespaced, e.Strategy.ReturnDeleted, typeOf(e.Resource), e.Verbs)
		for _, sub := range e.Subresources {
			fmt.Fprintln(&b, sub.Name, sub.Kind, reflect.TypeOf(sub.Body), sub.Verbs)
		}
	}
	return b.String()
}

func typeOf(res *resource.Resource) string {
	list := ""
	if res.NewList != nil {
		list = reflect.TypeOf(res.NewList()).String()
	}
	return reflect.TypeOf(res.New()).String() + " " + list
}
