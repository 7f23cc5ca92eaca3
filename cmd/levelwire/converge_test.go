package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/internal/testwait"
)

// converge waits until check is content.
func converge(ctx context.Context, t *testing.T, check func() error) {
	t.Helper()
	testwait.Stable(t, "it converges", func() (any, bool) {
		err := check()
		if err != nil && ctx.Err() != nil {
			t.Fatalf("it does not converge: %v", err)
		}
		return err, err == nil
	})
}

// verify compares lists with what was acknowledged.
func (w *writers) verify(ctx context.Context, c *client.Client) error {
	list, err := client.For[*corev1.ConfigMap](c).Namespace(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, maps := range w.maps {
		if err := maps.verify(list.Items); err != nil {
			return err
		}
	}
	sets, err := client.For[*appsv1.ReplicaSet](c).Namespace(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return w.sets.verify(sets.Items)
}

// verifyPods looks whether each ReplicaSet has exactly its pods, bound and
// running, and whether there are no others.
func verifyPods(ctx context.Context, c *client.Client, known map[string]*state) error {
	sets, err := client.For[*appsv1.ReplicaSet](c).Namespace(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	list, err := client.For[*corev1.Pod](c).Namespace(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	owned, addresses := map[types.UID]int{}, map[string]string{}
	for _, pod := range list.Items {
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			return fmt.Errorf("pod %s has no controller", pod.Name)
		}
		owned[owner.UID]++
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning || pod.Spec.NodeName == "" || !ready(pod) {
			return fmt.Errorf("pod %s is %s on %q, made %s, at version %s, with the conditions %+v", pod.Name, pod.Status.Phase, pod.Spec.NodeName, pod.CreationTimestamp, pod.ResourceVersion, pod.Status.Conditions)
		}
		if other, taken := addresses[pod.Status.PodIP]; taken {
			return fmt.Errorf("pods %s and %s have the same address %s", pod.Name, other, pod.Status.PodIP)
		}
		addresses[pod.Status.PodIP] = pod.Name
	}
	for _, set := range sets.Items {
		want := int32(known[set.Name].value)
		if int(want) != owned[set.UID] || set.Status.Replicas != want || set.Status.ReadyReplicas != want || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("replica set %s has %d pods and the status %+v, and should have %d", set.Name, owned[set.UID], set.Status, want)
		}
		delete(owned, set.UID)
	}
	if len(owned) > 0 {
		return fmt.Errorf("pods of deleted replica sets are left: %v", owned)
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// verifyProxy compares the table that the proxy has printed with the Services
// and the pods they select, from end to end.
func verifyProxy(ctx context.Context, c *client.Client, p *process) error {
	services, err := client.For[*corev1.Service](c).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := client.For[*corev1.Pod](c).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	want := map[string]string{}
	for _, service := range services.Items {
		if service.Spec.Selector == nil {
			continue // default/kubernetes
		}
		var backends []string
		for _, pod := range pods.Items {
			if pod.Labels[groupLabel] == service.Spec.Selector[groupLabel] {
				backends = append(backends, netip.AddrPortFrom(netip.MustParseAddr(pod.Status.PodIP), targetPort).String())
			}
		}
		slices.Sort(backends)
		if len(backends) == 0 {
			backends = []string{"no endpoints"}
		}
		want[service.Namespace+"/"+service.Name] = strings.Join(backends, ", ")
	}
	lines, _ := p.output()
	if got := printedTable(lines); !maps.Equal(got, want) {
		return fmt.Errorf("the proxy's table is %v, want %v", got, want)
	}
	return nil
}

// printedTable reads "service address -> backends" lines, the last of which
// counts, without default/kubernetes.
func printedTable(lines []string) map[string]string {
	table := map[string]string{}
	for _, line := range lines {
		line, gone := strings.CutPrefix(line, "gone: ")
		rule, backends, _ := strings.Cut(line, " -> ")
		service, _, _ := strings.Cut(rule, " ")
		if gone {
			delete(table, service)
		} else {
			table[service] = backends
		}
	}
	delete(table, "default/kubernetes")
	return table
}

// observer follows config maps and pods through informers for the whole test,
// and checks that no object's version ever goes back.
type observer struct {
	maps *informer.SharedInformer[*corev1.ConfigMap]
	pods *informer.SharedInformer[*corev1.Pod]
	stop func()

	mu       sync.Mutex
	versions map[types.UID]int64
	faults   []error
}

func newObserver(ctx context.Context, t *testing.T, c *client.Client) *observer {
	t.Helper()
	factory := informer.NewFactory(c, informer.Options{Namespace: metav1.NamespaceDefault, Logger: silent})
	o := &observer{
		maps: informer.For[*corev1.ConfigMap](factory, informer.ListOptions{}),
		pods: informer.For[*corev1.Pod](factory, informer.ListOptions{}), versions: map[types.UID]int64{},
	}
	if _, err := o.maps.AddHandler(watchVersions[*corev1.ConfigMap](o), informer.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.pods.AddHandler(watchVersions[*corev1.Pod](o), informer.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	factory.Start(ctx)
	o.stop = func() { cancel(); factory.Shutdown() }
	if err := factory.WaitForSync(ctx); err != nil {
		o.stop()
		t.Fatal(err)
	}
	return o
}

func watchVersions[T client.Object](o *observer) informer.Handler[T] {
	return informer.HandlerFuncs[T]{
		Add:    func(obj T, _ bool) { o.see(obj) },
		Update: func(_, obj T) { o.see(obj) },
		Delete: func(obj T, _ bool) { o.see(obj) },
	}
}

func (o *observer) see(obj metav1.Object) {
	version, err := versionOf(obj)
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := o.versions[obj.GetUID()]; err == nil && version < last {
		err = fmt.Errorf("%s went back from version %d to %d", obj.GetName(), last, version)
	}
	if err != nil {
		o.faults = append(o.faults, err)
	}
	o.versions[obj.GetUID()] = version
}

// verify compares the informers' copies with lists.
func (o *observer) verify(ctx context.Context, c *client.Client) error {
	o.mu.Lock()
	fault := errors.Join(o.faults...)
	o.mu.Unlock()
	return errors.Join(fault, sameAsListed(ctx, c, o.maps), sameAsListed(ctx, c, o.pods))
}

func sameAsListed[T client.Object](ctx context.Context, c *client.Client, i *informer.SharedInformer[T]) error {
	list, err := client.For[T](c).Namespace(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if got, want := versions(i.Lister().List("", nil)), versions(list.Items); !maps.Equal(got, want) {
		return fmt.Errorf("the informer of %s has %s objects, the server %s, or other versions", i.Name(), strconv.Itoa(len(got)), strconv.Itoa(len(want)))
	}
	return nil
}

func versions[T client.Object](items []T) map[string]string {
	found := map[string]string{}
	for _, obj := range items {
		found[obj.GetName()] = obj.GetResourceVersion()
	}
	return found
}
