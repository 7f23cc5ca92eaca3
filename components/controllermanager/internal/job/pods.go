package job

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// patchesAtOnce bounds the concurrent requests of one reconciliation.
const patchesAtOnce = 16

// letGo takes the tracking finalizer from pods.
func (c *Controller) letGo(ctx context.Context, free []*corev1.Pod) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(patchesAtOnce)
	for _, pod := range free {
		group.Go(func() error { return c.letOneGo(ctx, pod) })
	}
	return group.Wait()
}

func (c *Controller) letOneGo(ctx context.Context, pod *corev1.Pod) error {
	if !tracked(pod) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":                                 pod.UID,
		"$deleteFromPrimitiveList/finalizers": []string{batchv1.JobTrackingFinalizer},
	}})
	if err != nil {
		return err
	}
	_, err = c.podAPI.Namespace(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("take the finalizer of pod %s: %w", pod.Name, err)
	}
	return nil
}

// scale creates or deletes the difference. It returns when to try again if
// pods fail and the next one must wait.
func (c *Controller) scale(ctx context.Context, job *batchv1.Job, status *batchv1.JobStatus, books *account, now time.Time) (time.Duration, error) {
	active := slices.Clone(books.active)
	missing := wanted(job, status, len(active)) - len(active)
	var surplus []*corev1.Pod
	if indexed(job) {
		surplus = redundant(job, books)
	}
	if missing == 0 && len(surplus) == 0 {
		return 0, nil
	}
	if err := controller.Consistent(ctx, job); err != nil {
		return 0, err
	}
	switch {
	case len(surplus) > 0:
		return 0, c.remove(ctx, job, surplus)
	case missing < 0:
		pods.SortForDeletion(active)
		return 0, c.remove(ctx, job, active[:min(-missing, pods.Burst)])
	case missing > 0:
		if patient(job) {
			missing -= int(books.terminating)
		}
		if indexed(job) {
			indexes, wait := nextIndexes(job, books, now, min(missing, pods.Burst))
			return wait, c.createIndexes(ctx, job, books, indexes)
		}
		if wait := backOff(books, now); wait > 0 {
			return wait, nil
		}
		return 0, c.create(ctx, job, min(missing, pods.Burst))
	}
	return 0, nil
}

// nextIndexes returns up to n indexes that need a pod now, and when to look again if
// others must wait.
func nextIndexes(job *batchv1.Job, books *account, now time.Time, n int) ([]int, time.Duration) {
	if n <= 0 {
		return nil, 0
	}
	var waiting indexSet
	var wait time.Duration
	if perIndex(job) {
		waiting, wait = books.due(now)
	} else if wait := backOff(books, now); wait > 0 {
		return nil, wait
	}
	return books.completed.missing(union(books.taken, books.failed, waiting), int(*job.Spec.Completions), n), wait
}

func patient(job *batchv1.Job) bool {
	return job.Spec.PodReplacementPolicy != nil && *job.Spec.PodReplacementPolicy == batchv1.Failed
}

// redundant returns the active pods that work on an index that is done or given up, that is not the job's,
// or that an older pod works on.
func redundant(job *batchv1.Job, books *account) (surplus []*corev1.Pod) {
	oldest := map[int]*corev1.Pod{}
	for _, pod := range books.active {
		if index, ok := indexOf(pod); ok && (oldest[index] == nil || older(pod, oldest[index])) {
			oldest[index] = pod
		}
	}
	for _, pod := range books.active {
		index, ok := indexOf(pod)
		if !ok || index >= int(*job.Spec.Completions) || books.completed.has(index) || books.failed.has(index) || oldest[index] != pod {
			surplus = append(surplus, pod)
		}
	}
	return surplus
}

func older(a, b *corev1.Pod) bool {
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order < 0
	}
	return a.Name < b.Name
}

// remove deletes active pods that are not wanted. They are let go first: they
// have neither succeeded nor failed.
func (c *Controller) remove(ctx context.Context, job *batchv1.Job, surplus []*corev1.Pod) error {
	if err := c.letGo(ctx, surplus); err != nil {
		return err
	}
	return c.control.Delete(ctx, job, surplus)
}

func (c *Controller) create(ctx context.Context, job *batchv1.Job, n int) error {
	if n <= 0 {
		return nil
	}
	return c.control.Create(ctx, job, trackedTemplate(job), n, nil)
}

// createIndexes creates a pod for each index.
func (c *Controller) createIndexes(ctx context.Context, job *batchv1.Job, books *account, indexes []int) error {
	if len(indexes) == 0 {
		return nil
	}
	return c.control.Create(ctx, job, trackedTemplate(job), len(indexes), func(i int, pod *corev1.Pod) {
		setIndex(job, pod, indexes[i])
		if perIndex(job) {
			books.setFailureCounts(pod, indexes[i])
		}
	})
}

func trackedTemplate(job *batchv1.Job) *corev1.PodTemplateSpec {
	template := job.Spec.Template.DeepCopy()
	template.Finalizers = append(template.Finalizers, batchv1.JobTrackingFinalizer)
	return template
}

// setIndex writes a pod's index to every place where programs look for it.
func setIndex(job *batchv1.Job, pod *corev1.Pod, index int) {
	text := strconv.Itoa(index)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Annotations[batchv1.JobCompletionIndexAnnotation] = text
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = text
	pod.GenerateName = job.Name + "-" + text + "-"
	if pod.Spec.Hostname == "" {
		pod.Spec.Hostname = job.Name + "-" + text
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			addIndexVariable(&containers[i])
		}
	}
}

const indexVariable = "JOB_COMPLETION_INDEX"

func addIndexVariable(container *corev1.Container) {
	if slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == indexVariable }) {
		return
	}
	container.Env = append(container.Env, corev1.EnvVar{Name: indexVariable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + batchv1.JobCompletionIndexAnnotation + "']"},
	}})
}
