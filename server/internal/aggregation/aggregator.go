package aggregation

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Options configure an Aggregator.
type Options struct {
	// Certificate returns the client certificate by which aggregated servers recognize
	// this one; nil: there is none. It is called for each handshake.
	Certificate func() *tls.Certificate
	// Resources is the table of what this server serves itself. All never changes a
	// slice that it has returned. Required.
	Resources interface{ All() []*resource.Resource }
	// CheckInterval is how often a server that answers is asked again whether it does,
	// and what it serves. Default 30 s, as in kube-apiserver.
	CheckInterval time.Duration
	// RetryInterval is how often one is asked that does not answer, and how often its
	// Service and its endpoints are looked at. Default 1 s.
	RetryInterval time.Duration
	// Logger receives what operators should see. Required.
	Logger *slog.Logger
}

// Aggregator knows the servers of all APIServices. It is safe for concurrent use.
type Aggregator struct {
	opts     Options
	services resolver
	objects  registry.Registry // of APIServices

	// servers are those that requests go to; nil if there are none.
	servers   atomic.Pointer[map[schema.GroupVersion]*Server]
	published atomic.Pointer[Published]

	mu       sync.Mutex
	byName   map[string]*Server // by the name of the APIService with a Service, also those that are shadowed
	own      map[schema.GroupVersion]bool
	ownTable []*resource.Resource // own was read from

	// decoded are the APIServices as they were last read. Only Run uses it.
	decoded map[string]decoded
}

// decoded is an APIService with the state that it was decoded from.
type decoded struct {
	of  *watchcache.Object
	obj *apiregistrationv1.APIService
}

// New returns an Aggregator over the objects of a Set. It connects to nothing before Run.
func New(set *registry.Set, opts Options) (*Aggregator, error) {
	if opts.CheckInterval <= 0 {
		opts.CheckInterval = 30 * time.Second
	}
	if opts.RetryInterval <= 0 {
		opts.RetryInterval = time.Second
	}
	a := &Aggregator{opts: opts, byName: map[string]*Server{}}
	for _, of := range []struct {
		group, plural string
		into          *registry.Registry
	}{
		{apiregistrationv1.GroupName, "apiservices", &a.objects},
		{"", "services", &a.services.services}, {"discovery.k8s.io", "endpointslices", &a.services.slices},
	} {
		found, ok := set.Lookup(of.group, "v1", of.plural)
		if !ok || found.Cache() == nil {
			return nil, errors.New("aggregation: " + of.plural + " are not served")
		}
		*of.into = found
	}
	a.published.Store(&Published{})
	return a, nil
}

// Server returns the server of a group and version; nil if this server itself has to
// answer.
func (a *Aggregator) Server(group, version string) *Server {
	if a == nil {
		return nil
	}
	servers := a.servers.Load()
	if servers == nil {
		return nil
	}
	s := (*servers)[schema.GroupVersion{Group: group, Version: version}]
	if s == nil || a.isOwn(s.gv) {
		return nil
	}
	return s
}

// isOwn reports whether this server serves a group and version itself.
func (a *Aggregator) isOwn(gv schema.GroupVersion) bool {
	table := a.opts.Resources.All()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.own == nil || len(table) != len(a.ownTable) || len(table) > 0 && &table[0] != &a.ownTable[0] {
		a.own, a.ownTable = map[schema.GroupVersion]bool{}, table
		for _, res := range table {
			a.own[res.GroupVersion()] = true
		}
	}
	return a.own[gv]
}

// Close closes the connections that no request uses. It is called when there are no more
// requests.
func (a *Aggregator) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.byName {
		s.close()
	}
}

// Run follows the APIServices until ctx ends, and asks their servers. Those that it knows
// then can be asked until Close. It leaves no goroutine.
func (a *Aggregator) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		if err := a.follow(ctx, &running); err != nil && ctx.Err() == nil {
			a.opts.Logger.Warn("APIServices cannot be followed", "error", err)
			select {
			case <-time.After(a.opts.RetryInterval):
			case <-ctx.Done():
			}
		}
	}
}

// follow is Run until something fails.
func (a *Aggregator) follow(ctx context.Context, running *sync.WaitGroup) error {
	watcher, err := a.objects.Watch(ctx, nil)
	if err != nil {
		return err
	}
	defer watcher.Close()
	var events [64]watchcache.Event
	for {
		changed := false
		for {
			n, err := watcher.Read(events[:])
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			changed = true
		}
		if changed {
			objects, err := a.read(ctx)
			if err != nil {
				return err
			}
			a.replace(ctx, running, objects)
			if err := a.correctLocal(ctx, objects); err != nil {
				return err
			}
		}
		select {
		case <-watcher.Ready():
		case <-ctx.Done():
			return nil
		}
	}
}

// read decodes the APIServices that have changed, and returns all. One that cannot be read is
// left out.
func (a *Aggregator) read(ctx context.Context) (map[string]*apiregistrationv1.APIService, error) {
	snapshot, err := a.objects.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	before, all := a.decoded, map[string]*apiregistrationv1.APIService{}
	a.decoded = make(map[string]decoded, len(before))
	for o := range snapshot.Range("", "") {
		next := before[o.Key]
		if next.of != o {
			obj, err := registry.DecodeAs[*apiregistrationv1.APIService](ctx, a.objects, o)
			if err != nil {
				a.opts.Logger.Error("an APIService cannot be read and is ignored", "object", o.Key, "error", err)
				continue
			}
			if service := obj.Spec.Service; service != nil {
				apiregistrationv1.SetDefaults_ServiceReference(service) // another program may have stored it without a port
			}
			next = decoded{o, obj}
		}
		a.decoded[o.Key] = next
		all[next.obj.Name] = next.obj
	}
	return all, nil
}

// replace goes by the given APIServices in place of those before. Servers that are
// connected to as before are kept. APIServices without a Service have none.
func (a *Aggregator) replace(ctx context.Context, running *sync.WaitGroup, objects map[string]*apiregistrationv1.APIService) {
	a.mu.Lock()
	for name, s := range a.byName {
		if obj := objects[name]; obj == nil || obj.Spec.Service == nil || !s.sameConnection(obj) {
			s.stop()
			delete(a.byName, name)
		}
	}
	for name, obj := range objects {
		if obj.Spec.Service == nil {
			continue
		}
		if s := a.byName[name]; s != nil {
			s.object.Store(obj)
			continue
		}
		s := newServer(a, obj)
		a.byName[name] = s
		checking, stop := context.WithCancel(ctx)
		s.stop = func() {
			stop()
			s.close()
		}
		running.Go(func() { s.run(checking) })
	}
	servers := map[schema.GroupVersion]*Server{}
	for _, s := range a.byName {
		servers[s.gv] = s
	}
	a.mu.Unlock()
	if len(servers) == 0 {
		a.servers.Store(nil)
	} else {
		a.servers.Store(&servers)
	}
	a.publish()
}
