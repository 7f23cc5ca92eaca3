package events

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/lru"

	"github.com/levelwire/levelwire/client"
)

// Limits of a Recorder's memory. An event beyond the queue's length is dropped
// and counted. Of the events, groups of similar events and objects with events, it
// tracks the trackedMost that were used last; an occurrence of an event that it no
// longer tracks starts a new Event object. Longer messages are cut.
const (
	queueLength  = 1024
	trackedMost  = 4096
	messageMost  = 1024
	writeTimeout = 10 * time.Second
)

// Recorder writes events in the background, from Run. It is safe for
// concurrent use.
type Recorder struct {
	events    client.Resource[*corev1.Event]
	component string
	host      string
	log       *slog.Logger
	queue     chan occurrence
	filter    *spamFilter
	counts    counters
	running   atomic.Bool // Run was called
	waiting   sync.Once   // an event waits for the first call of Run
	full      sync.Once   // the queue was full
	// combiner, seen and lastName are touched by Run only.
	combiner *combiner
	seen     *lru.Cache // of written by eventKey
	lastName int64
}

// subject is an object and a type of events about it: what the spam filter counts by.
type subject struct {
	gvk             schema.GroupVersionKind
	namespace, name string
	uid             types.UID
	eventType       string
}

// similar is what events share that may be combined.
type similar struct {
	about  subject
	reason string
}

// eventKey is what the occurrences of one Event object share, which are counted there.
type eventKey struct {
	similar  similar
	message  string // none if combined
	combined bool
}

// occurrence is one call of Normal or Warning.
type occurrence struct {
	about           subject
	reason, message string
	version         string
	at              time.Time
}

// written is an Event object that this Recorder has created.
type written struct {
	name  string
	count int32
}

// New returns a Recorder of a component, which events name as their source.
func New(c *client.Client, component string, opts Options) *Recorder {
	opts = opts.withDefaults()
	return &Recorder{
		events: client.For[*corev1.Event](c), component: component, host: opts.Host, log: opts.Logger,
		queue:    make(chan occurrence, queueLength),
		filter:   newSpamFilter(opts.Burst, opts.RefillInterval),
		combiner: newCombiner(opts.CombineAfter, opts.CombineWindow),
		seen:     lru.New(trackedMost),
	}
}

// Normal reports something that went as it should with an object. The Recorder takes
// its kind from the client's scheme, or else from the object's TypeMeta; it reads the
// object's name, namespace, UID and resourceVersion during the call only.
func (r *Recorder) Normal(regarding client.Object, reason, format string, args ...any) {
	r.enqueue(regarding, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
}

// Warning is Normal for something that an operator may have to look at.
func (r *Recorder) Warning(regarding client.Object, reason, format string, args ...any) {
	r.enqueue(regarding, corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...))
}

func (r *Recorder) enqueue(regarding client.Object, eventType, reason, message string) {
	gvk, err := r.events.Client().Scheme().KindOf(regarding)
	if err != nil {
		r.log.Warn("event not written", "reason", reason, "error", err)
		r.counts.unknownKind.Add(1)
		return
	}
	o := occurrence{
		about:  subject{gvk, regarding.GetNamespace(), regarding.GetName(), regarding.GetUID(), eventType},
		reason: reason, message: cut(message),
		version: regarding.GetResourceVersion(),
		at:      time.Now(),
	}
	// The filter comes before the queue, so that one object's events cannot fill it.
	if ok, firstDrop := r.filter.allow(o.about, o.at); !ok {
		r.counts.throttled.Add(1)
		if firstDrop {
			r.log.Info("events about an object are dropped: there are too many", "component", r.component, "kind", gvk.Kind,
				"object", o.about.namespace+"/"+o.about.name, "type", eventType, "reason", reason)
		}
		return
	}
	select {
	case r.queue <- o:
		if !r.running.Load() {
			r.waiting.Do(func() { time.AfterFunc(runWarning, r.warnUnlessRunning) })
		}
	default:
		r.counts.queueFull.Add(1)
		r.full.Do(func() {
			r.log.Warn("events are dropped: the queue of the events.Recorder is full", "component", r.component, "length", queueLength, "running", r.running.Load())
		})
	}
}

// cut shortens a message to messageMost bytes, between characters.
func cut(message string) string {
	if len(message) <= messageMost {
		return message
	}
	return strings.ToValidUTF8(message[:messageMost-len("...")], "") + "..."
}

// runWarning is how long events may wait for the first call of Run without a warning.
const runWarning = 10 * time.Second

func (r *Recorder) warnUnlessRunning() {
	if !r.running.Load() {
		r.log.Warn("events wait, and the events.Recorder does not run: call its Run, or give it to controller.Run", "component", r.component)
	}
}

// Run writes events until ctx ends. What is still queued then is dropped. It returns
// nil: with Name and NeedLeaderElection it makes the Recorder a controller.Runnable.
func (r *Recorder) Run(ctx context.Context) error {
	r.running.Store(true)
	for ctx.Err() == nil {
		r.writeNext(ctx)
	}
	return nil
}

// Name is for the errors of controller.Run.
func (r *Recorder) Name() string { return r.component + " events" }

// NeedLeaderElection returns false: a process that does not lead may report events,
// too, and a new leader's must not wait.
func (r *Recorder) NeedLeaderElection() bool { return false }

// writeNext waits for an event, or the end of ctx, and writes it.
func (r *Recorder) writeNext(ctx context.Context) {
	select {
	case <-ctx.Done():
	case o := <-r.queue:
		key := r.combiner.combine(o)
		err := r.write(ctx, key, o)
		switch {
		case err == nil:
			r.counts.written.Add(1)
			if key.combined {
				r.counts.combined.Add(1)
			}
			return
		case ctx.Err() != nil: // the program ends
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // usual while a namespace is deleted
			r.log.Debug("event not written: its namespace is being deleted", "reason", o.reason, "object", o.about.namespace+"/"+o.about.name)
		default:
			r.log.Warn("event not written", "reason", o.reason, "object", o.about.namespace+"/"+o.about.name, "error", err)
		}
		r.counts.failed.Add(1)
	}
}

// write raises the count of the occurrence's Event object, or creates it.
func (r *Recorder) write(ctx context.Context, key eventKey, o occurrence) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if key.combined {
		o.message = cut(combinedPrefix + o.message)
	}
	if tracked, ok := r.seen.Get(key); ok {
		earlier := tracked.(written)
		earlier.count++
		err := r.count(ctx, key, o, earlier)
		if err == nil {
			r.seen.Add(key, earlier)
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		r.seen.Remove(key) // it has expired on the server
	}
	event := r.object(o)
	if _, err := r.events.Namespace(event.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return err
	}
	r.seen.Add(key, written{name: event.Name, count: 1})
	return nil
}

// count raises the count of an Event object. A combined one gets the newest message.
func (r *Recorder) count(ctx context.Context, key eventKey, o occurrence, earlier written) error {
	change := map[string]any{
		"count":         earlier.count,
		"lastTimestamp": metav1.NewTime(o.at),
	}
	if key.combined {
		change["message"] = o.message
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = r.events.Namespace(eventNamespace(o.about.namespace)).Patch(ctx, earlier.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// nameFor returns a name that no other event about the object has: the object's, and the
// time in nanoseconds, increased when two come in the same one.
func (r *Recorder) nameFor(o occurrence) string {
	r.lastName = max(r.lastName+1, o.at.UnixNano())
	suffix := fmt.Sprintf(".%x", r.lastName)
	return namePart(o.about.name, validation.DNS1123SubdomainMaxLength-len(suffix)) + suffix
}

func (r *Recorder) object(o occurrence) *corev1.Event {
	at := metav1.NewTime(o.at)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: eventNamespace(o.about.namespace),
			Name:      r.nameFor(o),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: o.about.gvk.GroupVersion().String(), Kind: o.about.gvk.Kind,
			Namespace: o.about.namespace, Name: o.about.name, UID: o.about.uid, ResourceVersion: o.version,
		},
		Type: o.about.eventType, Reason: o.reason, Message: o.message,
		Source:              corev1.EventSource{Component: r.component, Host: r.host},
		ReportingController: r.component,
		ReportingInstance:   r.host,
		FirstTimestamp:      at, LastTimestamp: at, Count: 1,
	}
}

// eventNamespace is where events about cluster-scoped objects are kept.
func eventNamespace(namespace string) string {
	if namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}
