package informertest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// Server is how to reach the API server that the suite is run on. It must
// serve namespaces and configmaps, and allow every request.
type Server struct {
	Config *rest.Config
	// Options are those of both clients, the one that is under test and the one
	// that writes. WrapTransport is the suite's.
	Options client.Options
}

// Guarantee is one promise of package informer.
type Guarantee struct {
	Name string
	// Says is the promise in one sentence.
	Says  string
	check func(e *env)
	// list and reflector are the options of the informer that check finds.
	list      informer.ListOptions
	reflector reflector.Options
}

// Guarantees are all of them, in the order in which they are worth reading.
func Guarantees() []Guarantee {
	var all []Guarantee
	for _, namespaceWatch := range [][]Guarantee{delivery, handlers, store, gaps} {
		all = append(all, namespaceWatch...)
	}
	return all
}

// Run tries every guarantee in a subtest of its name. start is called in each:
// within a testing/synctest bubble if bubble is synctest.Test. A nil bubble
// runs them as they are.
func Run(t *testing.T, start func(t *testing.T) Server, bubble func(*testing.T, func(*testing.T))) {
	if bubble == nil {
		bubble = func(t *testing.T, f func(*testing.T)) { f(t) }
	}
	for _, g := range Guarantees() {
		t.Run(g.Name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { g.try(t, start(t)) })
		})
	}
}

// testTimeout is how long anything may take before a guarantee counts as broken.
const testTimeout = time.Minute

// ours selects what the suite writes: a kube-apiserver puts a ConfigMap of its
// own into every namespace.
const ours = "value"

// env is what a guarantee is tried in: a namespace of its own, an informer of
// its ConfigMaps that talks through a faulty network, and a client that writes
// through a sound one.
type env struct {
	*testing.T
	ctx       context.Context
	network   *network
	factory   *informer.Factory
	informer  *informer.SharedInformer[*corev1.ConfigMap]
	writer    client.Resource[*corev1.ConfigMap] // of all namespaces
	namespace string
}

func (g Guarantee) try(t *testing.T, server Server) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	e := &env{T: t, ctx: ctx, network: newNetwork()}
	writing := e.connect(server, nil)
	defer writing.CloseIdleConnections()
	watching := e.connect(server, e.network)
	defer watching.CloseIdleConnections()
	e.writer = client.For[*corev1.ConfigMap](writing)
	e.namespace = e.newNamespace(writing)
	if g.list.LabelSelector == "" {
		g.list.LabelSelector = ours
	}
	g.reflector.Backoff = reflector.Backoff{Base: 5 * time.Millisecond, Max: 20 * time.Millisecond}
	e.factory = informer.NewFactory(watching, informer.Options{Namespace: e.namespace, Reflector: g.reflector})
	defer e.factory.Shutdown()
	e.informer = informer.For[*corev1.ConfigMap](e.factory, g.list)
	g.check(e)
}

func (e *env) connect(server Server, through *network) *client.Client {
	e.Helper()
	opts := server.Options
	if through != nil {
		opts.WrapTransport = through.wrap
		opts.Retry.Max = -1
	}
	c, err := client.New(server.Config, opts)
	e.must(err)
	return c
}

func (e *env) newNamespace(c *client.Client) string {
	e.Helper()
	namespace, err := client.For[*corev1.Namespace](c).Create(e.ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "informertest-"}}, metav1.CreateOptions{})
	e.must(err)
	return namespace.Name
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// start starts the informer and waits until it is synced.
func (e *env) start() {
	e.Helper()
	e.factory.Start(e.ctx)
	e.must(e.factory.WaitForSync(e.ctx))
}

// create makes a ConfigMap that says value.
func (e *env) create(name, value string) *corev1.ConfigMap {
	e.Helper()
	created, err := e.writer.Namespace(e.namespace).Create(e.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"value": value}}, Data: map[string]string{"value": value},
	}, metav1.CreateOptions{})
	e.must(err)
	return created
}

// change makes an object say something else; its label, too.
func (e *env) change(obj *corev1.ConfigMap, value string) *corev1.ConfigMap {
	e.Helper()
	obj = obj.DeepCopy()
	obj.Data, obj.Labels = map[string]string{"value": value}, map[string]string{"value": value}
	changed, err := e.writer.Namespace(e.namespace).Update(e.ctx, obj, metav1.UpdateOptions{})
	e.must(err)
	return changed
}

func (e *env) remove(name string) {
	e.Helper()
	e.must(e.writer.Namespace(e.namespace).Delete(e.ctx, name, metav1.DeleteOptions{}))
}

// lists is how many lists were begun, after which nothing but a gap or a
// server that says so may add one.
func (e *env) lists() int64 { return e.informer.ReflectorStats().ListCount() }

// once expects that there was no list but the first.
func (e *env) once() {
	e.Helper()
	if lists := e.informer.ReflectorStats().Lists; e.lists() != 1 {
		e.Errorf("lists: %v, want the initial one alone", lists)
	}
}
