package authorizationconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/apis/apiserver"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// Webhook is an authorizer that asks another server.
type Webhook interface {
	auth.Authorizer
	auth.ChangeNotifier
	// Run has decisions made again now and then, until ctx ends.
	Run(ctx context.Context)
}

// Options are the parts that a file refers to.
type Options struct {
	// Types are the types of authorizers that there are.
	Types []string
	// Authorizers are those that were made at the start, by their types, Webhook aside. A
	// file must name each of them once, in any order.
	Authorizers map[string]auth.Authorizer
	// CheckOrder refuses a file by the types of its authorizers, each once, in the order in
	// which they are asked; nil: any order will do.
	CheckOrder func(types []string) error
	// NewWebhook makes an authorizer of the type Webhook. It asks nothing yet.
	NewWebhook func(name string, config *apiserver.WebhookConfiguration) (Webhook, error)
	// Counted returns an authorizer that decides as another one does, and counts its
	// decisions; nil: they are not counted.
	Counted func(authorizerType, name string, a auth.Authorizer) auth.Authorizer
}

// Authorizer decides by the file that was loaded last. It is safe for concurrent use. It
// is an auth.RuleLister and an auth.ChangeNotifier, too.
type Authorizer struct {
	opts     Options
	compiler authorizationcel.Compiler
	changes  auth.Changes

	loading sync.Mutex // held while a file is loaded; changes may be notified meanwhile
	current atomic.Pointer[loaded]
}

// loaded is what a file says.
type loaded struct {
	union    auth.AuthorizerUnion
	webhooks []Webhook
	stop     func()        // ends the notifications of changes; may be nil
	replaced chan struct{} // closed when another file counts
}

// New returns an Authorizer. Load must be called before it is used.
func New(opts Options) *Authorizer {
	return &Authorizer{opts: opts, compiler: authorizationcel.NewDefaultCompiler()}
}

// Load makes a file count at once, for open watches, too. An error, which is one line,
// leaves in force what was there before.
func (a *Authorizer) Load(data []byte) error {
	a.loading.Lock()
	defer a.loading.Unlock()
	config, err := parse(data, a.opts.Types, a.compiler)
	if err == nil {
		err = checkTypes(config, slices.Collect(maps.Keys(a.opts.Authorizers)))
	}
	if err == nil && a.opts.CheckOrder != nil {
		err = a.opts.CheckOrder(typesOf(config))
	}
	if err != nil {
		return err
	}
	next, err := a.build(config)
	if err != nil {
		return err
	}
	next.stop = auth.OnChange(a.changes.NotifyUser, next.union...)
	former := a.current.Swap(next)
	a.changes.Notify()
	if former != nil {
		close(former.replaced)
		if former.stop != nil {
			former.stop()
		}
	}
	return nil
}

func (a *Authorizer) build(config *apiserver.AuthorizationConfiguration) (*loaded, error) {
	next := &loaded{replaced: make(chan struct{})}
	add := func(entry *apiserver.AuthorizerConfiguration, one auth.Authorizer) {
		if a.opts.Counted != nil {
			one = a.opts.Counted(string(entry.Type), entry.Name, one)
		}
		next.union = append(next.union, one)
	}
	for i, entry := range config.Authorizers {
		if one, ok := a.opts.Authorizers[string(entry.Type)]; ok {
			add(&entry, one)
			continue
		}
		webhook, err := a.opts.NewWebhook(entry.Name, entry.Webhook)
		if err != nil {
			return nil, fmt.Errorf("authorizers[%d].webhook: %w", i, err)
		}
		add(&entry, webhook)
		next.webhooks = append(next.webhooks, webhook)
	}
	return next, nil
}

// Authorize implements auth.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, attributes auth.Attributes) (auth.Decision, string, error) {
	return a.current.Load().union.Authorize(ctx, attributes)
}

// Rules implements auth.RuleLister.
func (a *Authorizer) Rules(ctx context.Context, user auth.User, namespace string) auth.Rules {
	return a.current.Load().union.Rules(ctx, user, namespace)
}

// OnChange implements auth.ChangeNotifier: another file is a change, and so are those that
// its authorizers report.
func (a *Authorizer) OnChange(changed func(user string)) (stop func()) {
	return a.changes.OnChange(changed)
}

// Run runs the webhooks of the file that counts, until ctx ends.
func (a *Authorizer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		current := a.current.Load()
		running, cancel := context.WithCancel(ctx)
		var webhooks sync.WaitGroup
		for _, w := range current.webhooks {
			webhooks.Go(func() { w.Run(running) })
		}
		select {
		case <-current.replaced:
		case <-ctx.Done():
		}
		cancel()
		webhooks.Wait()
	}
}
