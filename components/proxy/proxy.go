package proxy

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

// Options configures a Proxy.
type Options struct {
	// Changed is called after the table has changed, from the informers'
	// goroutines, perhaps concurrently. It must return quickly. nil: it is
	// not called.
	Changed func(*Table)
	// Logger receives what happens. Default: slog.Default().
	Logger *slog.Logger
}

// Proxy keeps a Table up to date.
type Proxy struct {
	opts     Options
	table    *Table
	factory  *informer.Factory
	services *informer.SharedInformer[*corev1.Service]
}

// New makes a proxy that reaches the API server through client.
func New(c *client.Client, opts Options) (*Proxy, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.Changed == nil {
		opts.Changed = func(*Table) {}
	}
	p := &Proxy{opts: opts, table: NewTable(), factory: informer.NewFactory(c, informer.Options{Logger: opts.Logger})}
	p.services = informer.For[*corev1.Service](p.factory, informer.ListOptions{})
	endpoints := informer.For[*discoveryv1.EndpointSlice](p.factory, informer.ListOptions{})
	if _, err := p.services.AddHandler(p.serviceHandler(), informer.HandlerOptions{}); err != nil {
		return nil, err
	}
	_, err := endpoints.AddHandler(p.sliceHandler(), informer.HandlerOptions{})
	return p, err
}

// Table returns the table, which Run keeps up to date.
func (p *Proxy) Table() *Table { return p.table }

// Run follows Services and EndpointSlices until ctx ends. It blocks.
func (p *Proxy) Run(ctx context.Context) error {
	p.factory.Start(ctx)
	defer p.factory.Shutdown()
	if err := p.factory.WaitForSync(ctx); err != nil {
		return err
	}
	p.opts.Logger.Info("proxy is running", "services", len(p.services.Lister().List("", nil)))
	<-ctx.Done()
	return nil
}

// report logs why a service has no rules.
func (p *Proxy) report(err error) {
	if err != nil {
		p.opts.Logger.Error("a service is too large", "error", err)
	}
}

func (p *Proxy) serviceHandler() informer.Handler[*corev1.Service] {
	set := func(service *corev1.Service) {
		p.report(p.table.SetService(service))
		p.opts.Changed(p.table)
	}
	return informer.HandlerFuncs[*corev1.Service]{
		Add:    func(service *corev1.Service, _ bool) { set(service) },
		Update: func(_, service *corev1.Service) { set(service) },
		Delete: func(service *corev1.Service, _ bool) {
			p.table.RemoveService(types.NamespacedName{Namespace: service.Namespace, Name: service.Name})
			p.opts.Changed(p.table)
		},
	}
}

func (p *Proxy) sliceHandler() informer.Handler[*discoveryv1.EndpointSlice] {
	return informer.HandlerFuncs[*discoveryv1.EndpointSlice]{
		Add: func(slice *discoveryv1.EndpointSlice, _ bool) {
			p.report(p.table.SetSlice(slice))
			p.opts.Changed(p.table)
		},
		Update: func(old, slice *discoveryv1.EndpointSlice) {
			if serviceOf(old) != serviceOf(slice) {
				p.table.RemoveSlice(old)
			}
			p.report(p.table.SetSlice(slice))
			p.opts.Changed(p.table)
		},
		Delete: func(slice *discoveryv1.EndpointSlice, _ bool) {
			p.table.RemoveSlice(slice)
			p.opts.Changed(p.table)
		},
	}
}
