package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	writers      = 3
	namesPerEach = 14 // in each namespace
	// operation bounds one write: the server may be gone.
	operation = 5 * time.Second
)

// ack is a write that the server has acknowledged: of a state, or of a deletion.
type ack struct {
	state
	deleted bool
	// ending: the pod was to end already, because a server died between the two
	// writes of a deletion. The next write may remove it; its answer is then what
	// that client wrote, with the version that it wrote over.
	ending bool
}

// population is the pods that are written, and what was acknowledged.
type population struct {
	client  kubernetes.Interface
	randoms []*rand.Rand // one for each writer; no two write the same pod

	mu    sync.Mutex
	acks  []ack
	known map[string]*corev1.Pod // last seen, by key
	steps int
}

func newPopulation(t *testing.T, config *rest.Config, seed uint64) *population {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &population{client: client, known: map[string]*corev1.Pod{}}
	for w := range writers {
		p.randoms = append(p.randoms, rand.New(rand.NewPCG(seed, uint64(w))))
	}
	for _, name := range namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// greet writes what is in every view.
func (p *population) greet(ctx context.Context) error {
	pods := p.client.CoreV1().Pods(namespaces[0])
	pod := p.make(p.randoms[0], namespaces[0], "")
	pod.GenerateName, pod.Labels["color"], pod.Spec.NodeName = "greeting-", "red", "n1"
	pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pod.Status.Phase = corev1.PodRunning
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// task is how much is written, in all, and how much of it may delete.
type task struct{ writes, deletes int }

// write does so, and returns when it is done or ctx ends. Servers may come and go
// meanwhile.
func (p *population) write(ctx context.Context, todo task) error {
	var running sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		share := task{todo.writes / writers, todo.deletes / writers}
		if w == 0 {
			share.deletes += todo.deletes % writers
		}
		running.Go(func() { errs[w] = p.writeShare(ctx, w, share) })
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *population) writeShare(ctx context.Context, w int, share task) error {
	random := p.randoms[w]
	for share.writes > 0 || share.deletes > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		namespace := namespaces[random.IntN(len(namespaces))]
		name := fmt.Sprintf("w%d-%d", w, random.IntN(namesPerEach))
		one, cancel := context.WithTimeout(ctx, operation) //passes: the server may be gone, and another write follows
		deletes := share.deletes > 0 && random.IntN(share.writes+share.deletes) < share.deletes
		ended, err := p.once(one, random, namespace, name, deletes)
		cancel()
		switch {
		case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			return err
		case err != nil: // the server is away
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		case ended:
			share.deletes--
		case !deletes:
			share.writes--
		}
	}
	return nil
}

// once makes one change of one pod, and says whether it was its end.
func (p *population) once(ctx context.Context, random *rand.Rand, namespace, name string, deletes bool) (ended bool, err error) {
	pods := p.client.CoreV1().Pods(namespace)
	key := namespace + "/" + name
	last := p.lookUp(key)
	choice := random.IntN(10)
	switch {
	case last == nil && deletes:
		return false, nil // another one
	case last == nil:
		pod, err := pods.Create(ctx, p.make(random, namespace, name), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // an answer was lost
			pod, err = pods.Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				p.learn(key, pod)
			}
			return false, err
		}
		return false, p.acknowledge(key, pod, err)
	case deletes:
		now := int64(0)
		err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &last.UID}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			p.learn(key, nil) // an answer was lost
			return false, nil
		}
		if err != nil {
			return false, err
		}
		p.end(key, last)
		if choice < 6 { // at once under the same name
			pod, err := pods.Create(ctx, p.make(random, namespace, name), metav1.CreateOptions{})
			return true, p.acknowledge(key, pod, err)
		}
		return true, nil
	case choice < 2 && last.Spec.NodeName == "":
		target := corev1.ObjectReference{Kind: "Node", Name: nodes[random.IntN(len(nodes))]}
		err := pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name, UID: last.UID}, Target: target}, metav1.CreateOptions{})
		if err == nil || !isAway(err) {
			pod, getErr := pods.Get(ctx, name, metav1.GetOptions{})
			if getErr == nil {
				p.learn(key, pod)
			}
			return false, getErr
		}
		return false, err
	case choice < 5:
		next := p.next(last)
		next.Status.Phase = phases[random.IntN(len(phases))]
		pod, err := pods.UpdateStatus(ctx, next, metav1.UpdateOptions{})
		return false, p.acknowledge(key, pod, err)
	default:
		next := p.next(last)
		next.Labels["color"] = colors[random.IntN(len(colors))]
		pod, err := pods.Update(ctx, next, metav1.UpdateOptions{})
		return false, p.acknowledge(key, pod, err)
	}
}

var (
	colors = []string{"red", "red", "blue", "green"}
	nodes  = []string{"n1", "n1", "n2"}
	phases = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded}
)

func isAway(err error) bool { return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown }

func (p *population) make(random *rand.Rand, namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{"color": colors[random.IntN(len(colors))]}, Annotations: map[string]string{"step": p.step()},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example/app:1"}}
	if random.IntN(3) == 0 {
		pod.Spec.NodeName = nodes[random.IntN(len(nodes))]
	}
	return pod
}

func (p *population) step() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps++
	return fmt.Sprint("step ", p.steps)
}

// next is the pod with another step.
func (p *population) next(last *corev1.Pod) *corev1.Pod {
	next := last.DeepCopy()
	next.Annotations["step"] = p.step()
	return next
}

func (p *population) lookUp(key string) *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[key]
}

func (p *population) learn(key string, pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod == nil {
		delete(p.known, key)
	} else {
		p.known[key] = pod
	}
}

// acknowledge notes what the server has answered to a write. It reads a pod again
// if the answer was lost.
func (p *population) acknowledge(key string, pod *corev1.Pod, err error) error {
	if err == nil {
		p.learn(key, pod)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.acks = append(p.acks, ack{state: stateOf(pod), ending: pod.DeletionTimestamp != nil})
		return nil
	}
	namespace, name, _ := strings.Cut(key, "/")
	ctx, cancel := context.WithTimeout(context.Background(), operation) //passes: the server may be gone, and the pod is read again before the next write of it
	defer cancel()
	switch pod, getErr := p.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); {
	case getErr == nil:
		p.learn(key, pod)
	case apierrors.IsNotFound(getErr):
		p.learn(key, nil)
	}
	return err
}

func (p *population) end(key string, pod *corev1.Pod) {
	p.learn(key, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acks = append(p.acks, ack{state: stateOf(pod), deleted: true})
}

// kept says which acknowledged write the store does not know of.
func (p *population) kept(all storeHistory) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.acks {
		removed, _, deleted := all.deletion(a.uid)
		switch {
		case a.deleted && !deleted:
			return fmt.Errorf("the end of %v was acknowledged, and has not happened", a.state)
		case !a.deleted && !all.wrote(a.state) && (!a.ending || !deleted || removed != a.version):
			return fmt.Errorf("%v was acknowledged, and is not in the store's history: %v", a.state, all.byUID[a.uid])
		}
	}
	return nil
}
