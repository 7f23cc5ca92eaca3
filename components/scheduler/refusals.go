package scheduler

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// refusals remembers which pods fit nowhere: what one pod of a Deployment is refused for,
// the others are, too, until room appears. Without it, 10,000 such pods and 250 nodes kept a
// quarter of a processor busy. Assumed pods only take room, so what was refused stays
// refused. It belongs to the goroutine that schedules.
type refusals struct {
	rooms, nodes uint64               // for which the reasons are right: see Scheduler.rooms, ledger.nodeChanges
	why          map[signature]string // by signature
}

// signature is a hash: what it stands for may take a megabyte.
type signature [sha256.Size]byte

// maxRefusals bounds the memory: pods of DaemonSets, for example, each have a signature of
// their own.
const maxRefusals = 1000

// find returns why pods like the request's fit nowhere, if that is known. While nothing is
// refused it costs nothing.
func (r *refusals) find(request *request, rooms, nodes uint64) (why string, ok bool) {
	if r.rooms != rooms || r.nodes != nodes || len(r.why) == 0 {
		return "", false
	}
	key, ok := request.signature()
	if !ok {
		return "", false
	}
	why, ok = r.why[key]
	return why, ok
}

// add notes why pods like the request's fit nowhere.
func (r *refusals) add(request *request, rooms, nodes uint64, why string) {
	key, ok := request.signature()
	if !ok {
		return
	}
	if r.rooms != rooms || r.nodes != nodes || r.why == nil || len(r.why) >= maxRefusals {
		*r = refusals{rooms: rooms, nodes: nodes, why: map[signature]string{}}
	}
	r.why[key] = why
}

// signature is everything that a refusal of the request depends on, beside the nodes and
// what is taken on them. It is not ok if that cannot be written.
func (r *request) signature() (s signature, ok bool) {
	spec := &r.pod.Spec
	var required *corev1.NodeSelector
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		required = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	written, err := json.Marshal([]any{spec.Tolerations, spec.NodeSelector, required, r.amounts.extended})
	if err != nil {
		return signature{}, false
	}
	return sha256.Sum256(fmt.Appendf(nil, "%d %d %d %d %q %s", r.priority, r.amounts.milliCPU, r.amounts.memory, r.amounts.ephemeral, r.amounts.ports, written)), true
}
