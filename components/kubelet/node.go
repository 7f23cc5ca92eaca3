package kubelet

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"runtime"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// register makes the node exist and be Ready. It tries until it succeeds or
// ctx ends: the API server may start after its kubelets.
func (k *Kubelet) register(ctx context.Context) error {
	const first, most = 100 * time.Millisecond, 5 * time.Second
	for wait := first; ; wait = min(2*wait, most) {
		err := k.ensureNode(ctx)
		if err == nil {
			err = k.renewLease(ctx)
		}
		if err == nil {
			return nil
		}
		if wait > time.Second {
			k.log.Info("node not registered yet, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// ensureNode writes the node's status, and makes the node if there is none.
func (k *Kubelet) ensureNode(ctx context.Context) error {
	if _, known := k.node.Lister().Get("", k.opts.NodeName); known {
		if err := k.patchNodeStatus(ctx); !apierrors.IsNotFound(err) {
			return err
		}
	}
	node := k.nodeObject()
	_, err := k.nodeAPI.Create(ctx, node, metav1.CreateOptions{})
	switch {
	case err == nil: // with its status
		k.events.Normal(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: types.UID(node.Name)}},
			"RegisteredNode", "Node %s has registered", node.Name)
		return nil
	case apierrors.IsAlreadyExists(err):
		return k.patchNodeStatus(ctx)
	}
	return err
}

func (k *Kubelet) nodeObject() *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   k.opts.NodeName,
		corev1.LabelOSStable:   runtime.GOOS,
		corev1.LabelArchStable: runtime.GOARCH,
	}
	maps.Copy(labels, k.opts.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: k.opts.NodeName, Labels: labels},
		Spec:       corev1.NodeSpec{PodCIDR: k.opts.PodCIDR.String(), PodCIDRs: []string{k.opts.PodCIDR.String()}},
		Status:     k.nodeStatus(time.Now()),
	}
}

func (k *Kubelet) nodeStatus(now time.Time) corev1.NodeStatus {
	return corev1.NodeStatus{
		Phase:       corev1.NodeRunning,
		Capacity:    k.opts.Capacity,
		Allocatable: k.opts.Capacity,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: k.opts.NodeIP.String()},
			{Type: corev1.NodeHostName, Address: k.opts.NodeName},
		},
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: k.opts.Version, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
			OSImage: "Levelwire simulated node", KernelVersion: "none", ContainerRuntimeVersion: "simulated://1",
		},
		Conditions: k.nodeConditions(now),
	}
}

// nodeConditions says that the node is ready and short of nothing. A
// condition keeps the time of its last transition while its status stays.
func (k *Kubelet) nodeConditions(now time.Time) []corev1.NodeCondition {
	since := map[corev1.NodeConditionType]corev1.NodeCondition{}
	if node, ok := k.node.Lister().Get("", k.opts.NodeName); ok {
		for _, c := range node.Status.Conditions {
			since[c.Type] = c
		}
	}
	at := metav1.NewTime(now)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		c := corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: at, LastTransitionTime: at}
		if old, ok := since[kind]; ok && old.Status == status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		return c
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "the simulated kubelet is posting ready status"),
	}
}

func (k *Kubelet) patchNodeStatus(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{"status": k.nodeStatus(time.Now())})
	if err != nil {
		return err
	}
	_, err = k.nodeAPI.Patch(ctx, k.opts.NodeName, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// statusInterval is how often the node's full status is written although
// nothing changed. In between, the lease shows that the node lives (KEP-589).
const statusInterval = 5 * time.Minute

// heartbeat renews the lease, rewrites the status now and then, and repairs
// the node at once when another client deleted it or marked it as lost. It begins at a
// random moment: kubelets that were started together do not write together for ever.
func (k *Kubelet) heartbeat(ctx context.Context) {
	interval := k.opts.LeaseDuration / 4
	timer := time.NewTimer(rand.N(interval))
	defer timer.Stop()
	last := time.Now().Add(-rand.N(statusInterval))
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(interval)
		}
		err := k.renewLease(ctx)
		if err == nil && (time.Since(last) >= statusInterval || !k.shownReady()) {
			if err = k.ensureNode(ctx); err == nil {
				last = time.Now()
			}
		}
		if err != nil && ctx.Err() == nil {
			k.log.Warn("heartbeat failed, the next one may succeed", "error", err)
		}
	}
}

// shownReady reports whether the API server shows the node as Ready.
func (k *Kubelet) shownReady() bool {
	node, ok := k.node.Lister().Get("", k.opts.NodeName)
	if !ok {
		return false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// renewLease writes the lease as the last renewal returned it, with a new time: that costs
// the server less than a patch, which it would have to apply to the stored lease. If another
// client has changed or deleted the lease, it is read or made again.
func (k *Kubelet) renewLease(ctx context.Context) error {
	if k.lease != nil {
		err := k.writeLease(ctx, k.lease)
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
		k.lease = nil
	}
	now, seconds := metav1.NowMicro(), int32(k.opts.LeaseDuration/time.Second)
	created, err := k.leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: k.opts.NodeName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &k.opts.NodeName, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err == nil {
		k.lease = created
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	lease, err := k.leases.Get(ctx, k.opts.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return k.writeLease(ctx, lease)
}

// writeLease replaces the lease and keeps what the server answers.
func (k *Kubelet) writeLease(ctx context.Context, lease *coordinationv1.Lease) error {
	now, seconds := metav1.NowMicro(), int32(k.opts.LeaseDuration/time.Second)
	renewed := lease.DeepCopy()
	renewed.Spec.HolderIdentity, renewed.Spec.LeaseDurationSeconds, renewed.Spec.RenewTime = &k.opts.NodeName, &seconds, &now
	written, err := k.leases.Update(ctx, renewed, metav1.UpdateOptions{})
	if err == nil {
		k.lease = written
	}
	return err
}
