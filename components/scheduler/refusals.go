package scheduler

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// refusals remembers which pods fit nowhere: what one pod of a Deployment is refused for,
// the others are, too, until room appears. Without it, 10,000 such pods and 250 nodes kept a
// quarter of a processor busy. Assumed pods only take room, so what was refused stays
// refused. It belongs to the goroutine that schedules.
type refusals struct {
	rooms, nodes uint64            // for which the reasons are right: see Scheduler.rooms, ledger.nodeChanges
	why          map[string]string // by signature
}

// maxRefusals bounds the memory: pods of DaemonSets, for example, each have a signature of
// their own.
const maxRefusals = 1000

// find returns why pods like the request's fit nowhere, if that is known. While nothing is
// refused it costs nothing.
func (r *refusals) find(request *request, rooms, nodes uint64) (why string, ok bool) {
	if r.rooms != rooms || r.nodes != nodes || len(r.why) == 0 {
		return "", false
	}
	why, ok = r.why[request.signature()]
	return why, ok
}

// add notes why pods like the request's fit nowhere.
func (r *refusals) add(request *request, rooms, nodes uint64, why string) {
	signature := request.signature()
	if signature == "" {
		return
	}
	if r.rooms != rooms || r.nodes != nodes || r.why == nil || len(r.why) >= maxRefusals {
		*r = refusals{rooms: rooms, nodes: nodes, why: map[string]string{}}
	}
	r.why[signature] = why
}

// signature is everything that a refusal of the request depends on, beside the nodes and
// what is taken on them. It is empty if it cannot be written.
func (r *request) signature() string {
	spec := &r.pod.Spec
	var required *corev1.NodeSelector
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		required = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	written, err := json.Marshal([]any{spec.Tolerations, spec.NodeSelector, required, r.amounts.extended})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d %d %q %s", r.amounts.milliCPU, r.amounts.memory, r.amounts.ephemeral, r.amounts.ports, written)
}
