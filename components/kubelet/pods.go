package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/controller"
)

// sync brings one pod a step forward.
func (k *Kubelet) sync(ctx context.Context, key controller.Key) (controller.Result, error) {
	pod, ok := k.pods.Lister().Get(key.Namespace, key.Name)
	if !ok {
		return controller.Result{}, nil
	}
	defer k.forgetIfGone(pod)
	now := time.Now()
	seen := k.remember(pod, now)
	seen.refused = k.resize(pod)
	next := k.opts.next(pod, seen, now)
	if next.wait > 0 {
		return controller.After(next.wait), nil
	}
	return controller.Result{}, k.enter(ctx, pod, next.stage, seen, now)
}

// enter does what a stage of the pod's life begins with.
func (k *Kubelet) enter(ctx context.Context, pod *corev1.Pod, stage stage, seen times, now time.Time) error {
	switch stage {
	case stageAccept:
		return k.accept(ctx, pod, now)
	case stageMove:
		return k.move(ctx, pod, k.opts.play(pod, seen, now))
	case stageShow:
		return k.patchStatus(ctx, pod, played(pod, *pod.Status.DeepCopy(), now))
	case stageExpire:
		return k.expire(ctx, pod, now)
	case stageStop:
		return k.stop(ctx, pod, now)
	}
	return nil
}

// move reports where a pod's containers are.
func (k *Kubelet) move(ctx context.Context, pod *corev1.Pod, p *play) error {
	if p.status.PodIP == "" {
		ip, ok := k.opts.NodeIP, true
		if !pod.Spec.HostNetwork {
			ip, ok = k.ips.assign(pod.UID)
		}
		if !ok {
			return errors.New("no pod address is free in " + k.opts.PodCIDR.String())
		}
		p.status.PodIP, p.status.PodIPs = ip.String(), []corev1.PodIP{{IP: ip.String()}}
	}
	status := played(pod, *p.status, p.now)
	if err := k.patchStatus(ctx, pod, status); err != nil {
		return err
	}
	for _, e := range p.said {
		record := k.events.Normal
		if e.kind == corev1.EventTypeWarning {
			record = k.events.Warning
		}
		record(pod, e.reason, "%s", e.message)
	}
	return nil
}

// stop reports the containers of a deleted pod as ended and then removes it,
// for good: only the kubelet knows that nothing runs any more. With finalizers
// the pod stays for a while, and the owners of the finalizers see what became of
// it.
func (k *Kubelet) stop(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	if pod.Status.Phase == corev1.PodRunning {
		code, phase := killed(pod)
		if err := k.patchStatus(ctx, pod, stopped(pod, code, phase, now)); err != nil {
			return err
		}
	}
	var immediately int64
	err := k.podAPI.Namespace(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &immediately,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
	return unlessGone(err)
}

// patchStatus writes a pod's status. The uid guards against another pod of
// the same name; merging by key keeps what others say in the status.
func (k *Kubelet) patchStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	patch, err := statusPatch(pod, status)
	if err != nil {
		return err
	}
	_, err = k.podAPI.Namespace(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return unlessGone(err)
}

// statusPatch is a strategic merge patch for a pod's status. Conditions are
// merged by type. One that a patch leaves out stays, and so does what it leaves out of one: a condition or
// a reason that does not hold any more must be taken away in so many words.
func statusPatch(pod *corev1.Pod, status corev1.PodStatus) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	conditions, _ := fields["conditions"].([]any)
	kept := make(map[corev1.PodConditionType]bool, len(status.Conditions))
	for i := range status.Conditions {
		kept[status.Conditions[i].Type] = true
		condition := conditions[i].(map[string]any)
		for _, name := range []string{"reason", "message"} {
			if _, given := condition[name]; !given {
				condition[name] = nil
			}
		}
	}
	for i := range pod.Status.Conditions {
		if kind := pod.Status.Conditions[i].Type; !kept[kind] {
			conditions = append(conditions, map[string]any{"$patch": "delete", "type": string(kind)})
		}
	}
	if len(conditions) > 0 {
		fields["conditions"] = conditions
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": fields})
}

// unlessGone ignores that the pod has gone, or that another has its name: the
// watch will deliver that.
func unlessGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
