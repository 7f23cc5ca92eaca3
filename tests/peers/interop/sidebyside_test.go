package interop

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/server"
)

const (
	churnWriters = 4
	churnObjects = 5  // per writer
	churnWrites  = 80 // per writer
)

// TestSideBySide has several writers create, change, delete and recreate pods
// at random while both informers look on, on each server. All handlers get the
// same events of each object, state by state; one of ours that is slow may get
// fewer, but no others and in no other order. The servers, too, make the same of
// the same writes.
func TestSideBySide(t *testing.T) {
	notes := map[string]map[string][]string{}
	for maker, config := range serveAll(t, server.Memory) {
		t.Run(maker, func(t *testing.T) { notes[maker] = lookOn(t, config) })
	}
	ourServer, upstreamServer := notes["our server"], notes["upstream server"]
	wantSame(t, "our server", ourServer, "the upstream server", upstreamServer)
}

// lookOn returns what all handlers got on one server.
func lookOn(t *testing.T, config *clientrest.Config) map[string][]string {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	client := clientset(t, config)
	base := settings{namespace: newNamespace(t, client), streaming: true, protobuf: true}
	with := func(s settings) settings { s.tap = newTap(); return s }
	our, stock := newOurs(t, config, with(base)).(*ours), newStock(t, config, with(base))

	every, theirs, slow := newRecorder(), newRecorder(), newRecorder()
	slow.hold = make(chan struct{})
	release := sync.OnceFunc(func() { close(slow.hold) })
	our.handle(t, every, 0)
	our.handleWith(t, slow, informer.HandlerOptions{})
	stock.handle(t, theirs, 0)
	our.start(t)
	t.Cleanup(release) // before the informer's end, which waits for its handlers
	stock.start(t)
	if !our.waitSync(ctx) || !stock.waitSync(ctx) {
		t.Fatal("no sync")
	}

	last := churn(ctx, t, client, base.namespace)
	for _, r := range []*recorder{every, theirs, slow} {
		if r == slow {
			release()
		}
		for name, last := range last {
			r.until(ctx, t, "of "+name+" "+last, func() bool { return endsWith(r.of(name), last) })
		}
		r.check(t)
	}
	wantSame(t, "our informer", every.all(), "client-go's informer", theirs.all())
	wantSkipsOnly(t, slow.all(), every.all())
	w := newWriter(ctx, t, client, base.namespace)
	w.sameAsServer(our, metav1.ListOptions{})
	w.sameAsServer(stock, metav1.ListOptions{})
	return every.all()
}

// endsWith reports whether the last of an object's notes is about a state. No
// notes at all are right for an object that is gone: its life was missed.
func endsWith(notes []string, last string) bool {
	if len(notes) == 0 {
		return strings.HasPrefix(last, "delete ")
	}
	return strings.HasSuffix(" "+notes[len(notes)-1], " "+last)
}

// churn writes and returns the last state of each object. What it writes
// depends on nothing but constants.
func churn(ctx context.Context, t *testing.T, client kubernetes.Interface, namespace string) map[string]string {
	t.Helper()
	finals := make([]map[string]string, churnWriters)
	var group errgroup.Group
	for i := range churnWriters {
		c := &churner{
			ctx: ctx, client: client, namespace: namespace,
			random: rand.New(rand.NewPCG(uint64(i), 1)), last: map[string]string{}, alive: map[string]bool{},
		}
		finals[i] = c.last
		group.Go(func() error {
			for step := range churnWrites {
				if err := c.write(fmt.Sprintf("w%d-%d", i, c.random.IntN(churnObjects)), fmt.Sprint(step)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, final := range finals {
		maps.Copy(all, final)
	}
	return all
}

// churner is one writer; its pods are its own.
type churner struct {
	ctx       context.Context
	client    kubernetes.Interface
	namespace string
	random    *rand.Rand
	last      map[string]string
	alive     map[string]bool
}

func (c *churner) write(name, step string) error {
	pods := c.client.CoreV1().Pods(c.namespace)
	if !c.alive[name] {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"step": step}}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example/app:1"}}
		created, err := pods.Create(c.ctx, pod, metav1.CreateOptions{})
		if err == nil {
			c.alive[name], c.last[name] = true, stateOf(created)
		}
		return err
	}
	if c.random.IntN(5) == 0 {
		c.alive[name], c.last[name] = false, "delete "+c.last[name]+" ending"
		return pods.Delete(c.ctx, name, metav1.DeleteOptions{})
	}
	pod, err := pods.Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if c.random.IntN(4) == 0 && pod.Status.Phase == corev1.PodPending {
		pod.Status.Phase = corev1.PodRunning
		pod, err = pods.UpdateStatus(c.ctx, pod, metav1.UpdateOptions{})
	} else {
		pod.Annotations["step"] = step
		pod, err = pods.Update(c.ctx, pod, metav1.UpdateOptions{})
	}
	if err == nil {
		c.last[name] = stateOf(pod)
	}
	return err
}

func wantSame(t *testing.T, one string, a map[string][]string, other string, b map[string][]string) {
	t.Helper()
	for name := range merge(a, b) {
		if !slices.Equal(a[name], b[name]) {
			t.Errorf("of %s %s got\n%s\nand %s\n%s", name, one, strings.Join(a[name], "\n"), other, strings.Join(b[name], "\n"))
		}
	}
}

func merge(a, b map[string][]string) map[string][]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// wantSkipsOnly wants a slow handler's notes to be some of all notes, in order,
// and fewer than all.
func wantSkipsOnly(t *testing.T, slow, every map[string][]string) {
	t.Helper()
	calls, events := 0, 0
	for name, notes := range every {
		rest := outcomes(notes)
		for _, outcome := range outcomes(slow[name]) {
			at := slices.Index(rest, outcome)
			if at < 0 {
				t.Fatalf("of %s the slow handler got\n%s\nwhich does not follow from\n%s",
					name, strings.Join(slow[name], "\n"), strings.Join(notes, "\n"))
			}
			rest = rest[at+1:]
		}
		calls, events = calls+len(slow[name]), events+len(notes)
	}
	if calls >= events {
		t.Errorf("a handler that did nothing until the end got %d calls for %d events", calls, events)
	}
}

// outcomes is what each note leaves: a state, or no object.
func outcomes(notes []string) []string {
	left := make([]string, 0, len(notes))
	for _, note := range notes {
		if _, after, found := strings.Cut(note, " > "); found {
			note = after
		} else if word, state, _ := strings.Cut(note, " "); word != "delete" {
			note = state
		}
		left = append(left, note)
	}
	return left
}
