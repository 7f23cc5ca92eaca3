package nodeauthorizer

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/follower"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// index finds the pods of a node, and the volumes that are mounted with a secret. It has
// keys only: what the objects are, decisions read from the caches. It may have a key whose
// object has changed or is gone, but it lacks none.
type index struct {
	nodeField int // of pods, among their fields
	volumes   registry.Registry
	changes   auth.Changes

	mu       sync.RWMutex
	pods     map[string]map[string]struct{}      // keys of pods, by node
	bySecret map[secretKey]map[claimKey][]string // names of volumes, by the claims that they are bound to
	secrets  map[string]mounted                  // of volumes that have any, by name
}

// secretKey names a secret.
type secretKey struct{ namespace, name string }

// claimKey names a PersistentVolumeClaim.
type claimKey struct{ namespace, name string }

// mounted is what a volume is mounted with, and by the pods of which claim.
type mounted struct {
	secrets []secretKey
	claim   claimKey
}

// newIndex returns the index of two kinds, and what keeps it in step with their caches.
func newIndex(pods, volumes registry.Registry, nodeField int, log *slog.Logger) (*index, *follower.Follower) {
	x := &index{nodeField: nodeField, volumes: volumes}
	return x, follower.New(log,
		follower.Kind{Registry: pods, Replace: x.replacePods, Apply: x.applyPods},
		follower.Kind{Registry: volumes, Replace: x.replaceVolumes, Apply: x.applyVolumes})
}

func (x *index) replacePods(_ context.Context, objects watchcache.Snapshot) {
	defer x.changes.Notify() // after Unlock
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pods = map[string]map[string]struct{}{}
	for o := range objects.Range("", "") {
		x.addPod(o)
	}
}

// podsOf appends the keys of the pods of a node in a namespace.
func (x *index) podsOf(keys []string, node, namespace string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for key := range x.pods[node] {
		if len(key) > len(namespace) && key[len(namespace)] == '/' && key[:len(namespace)] == namespace {
			keys = append(keys, key)
		}
	}
	return keys
}

// allPodsOf returns the keys of the pods of a node.
func (x *index) allPodsOf(node string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.pods[node]))
}

// isMounted reports whether a volume is mounted with a secret.
func (x *index) isMounted(secret secretKey) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.bySecret[secret]) > 0
}

// volumesOf returns the names of the volumes that are mounted with a secret, and bound to a claim: one, usually. Nobody
// modifies what it returns.
func (x *index) volumesOf(secret secretKey, claim claimKey) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.bySecret[secret][claim]
}

// addPod is called while mu is held.
func (x *index) addPod(o *watchcache.Object) {
	node := o.Attributes.Fields[x.nodeField]
	if node == "" {
		return
	}
	keys := x.pods[node]
	if keys == nil {
		keys = map[string]struct{}{}
		x.pods[string([]byte(node))] = keys // the string would keep the whole pod in memory
	}
	keys[o.Key] = struct{}{}
}

// applyPods reports the nodes that have lost a pod: their kubelets may have lost rights. A
// pod that stays bound refers to what it did, as its API has it.
func (x *index) applyPods(_ context.Context, events []watchcache.Event) {
	var lost []string
	x.mu.Lock()
	for i := range events {
		o := events[i].Object
		if events[i].Type != watchcache.Deleted {
			x.addPod(o)
			continue
		}
		node := o.Attributes.Fields[x.nodeField]
		keys, ok := x.pods[node]
		if !ok {
			continue
		}
		lost = append(lost, node)
		if delete(keys, o.Key); len(keys) == 0 {
			delete(x.pods, node)
		}
	}
	x.mu.Unlock()
	for _, node := range lost {
		x.changes.NotifyUser(auth.NodeUserName(node))
	}
}

func (x *index) replaceVolumes(ctx context.Context, objects watchcache.Snapshot) {
	defer x.changes.Notify() // after Unlock
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bySecret, x.secrets = map[secretKey]map[claimKey][]string{}, map[string]mounted{}
	for o := range objects.Range("", "") {
		x.setVolume(ctx, o)
	}
}

// applyVolumes reports to all nodes that a volume with secrets has changed: these are few,
// and seldom change.
func (x *index) applyVolumes(ctx context.Context, events []watchcache.Event) {
	changed := false
	x.mu.Lock()
	for i := range events {
		o := events[i].Object
		changed = x.removeVolume(o.Key) || changed
		if events[i].Type != watchcache.Deleted {
			x.setVolume(ctx, o)
		}
	}
	x.mu.Unlock()
	if changed {
		x.changes.Notify()
	}
}

// mayMount is in the JSON of every volume that is mounted with a secret.
var mayMount = [][]byte{[]byte(`ecretRef"`), []byte(`"secretName"`)}

// setVolume is called while mu is held. A volume that cannot be read leads to nothing.
func (x *index) setVolume(ctx context.Context, o *watchcache.Object) {
	if json := o.JSON(); !bytes.Contains(json, mayMount[0]) && !bytes.Contains(json, mayMount[1]) {
		return
	}
	volume, err := registry.DecodeAs[*corev1.PersistentVolume](ctx, x.volumes, o)
	if err != nil {
		return
	}
	keys := mountSecrets(volume)
	if len(keys) == 0 || volume.Spec.ClaimRef == nil {
		return // no pod has a volume without a claim
	}
	claim := claimKey{volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name}
	x.secrets[o.Key] = mounted{keys, claim}
	for _, key := range keys {
		if x.bySecret[key] == nil {
			x.bySecret[key] = map[claimKey][]string{}
		}
		if names := x.bySecret[key][claim]; !slices.Contains(names, o.Key) { // a volume may name a secret twice
			x.bySecret[key][claim] = append(slices.Clip(names), o.Key)
		}
	}
}

// removeVolume is called while mu is held. It reports whether the volume had secrets.
func (x *index) removeVolume(name string) bool {
	was, ok := x.secrets[name]
	delete(x.secrets, name)
	for _, key := range was.secrets {
		claims := x.bySecret[key]
		if left := slices.DeleteFunc(slices.Clone(claims[was.claim]), func(n string) bool { return n == name }); len(left) > 0 {
			claims[was.claim] = left
		} else if delete(claims, was.claim); len(claims) == 0 {
			delete(x.bySecret, key)
		}
	}
	return ok
}
