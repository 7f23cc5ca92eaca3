package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// tally is how far pods have come. Controllers may make more than are wanted, and delete some again.
type tally struct {
	want  int
	pods  map[types.UID]stage // those that are there
	bound int                 // how many of them are bound
	come  int                 // how many there ever were
}

// stage is how far a pod has come.
type stage struct{ bound, ends bool }

func newTally(want int) *tally { return &tally{want: want, pods: map[types.UID]stage{}} }

// add adds an event, and reports whether the pod is to be removed now: it is bound, and to end.
func (t *tally) add(kind watch.EventType, pod *corev1.Pod) (remove bool) {
	before, known := t.pods[pod.UID]
	if !known {
		t.come++
	}
	if before.bound {
		t.bound--
	}
	if kind == watch.Deleted {
		delete(t.pods, pod.UID)
		return false
	}
	now := stage{bound: pod.Spec.NodeName != "", ends: pod.DeletionTimestamp != nil}
	if now.bound {
		t.bound++
	}
	t.pods[pod.UID] = now
	return now.bound && now.ends && !before.ends
}

// isBound reports whether as many pods are bound as there are to be.
func (t *tally) isBound() bool { return t.bound >= t.want }

// isGone reports whether as many pods as there were to be have come, and all are gone.
func (t *tally) isGone() bool { return t.come >= t.want && len(t.pods) == 0 }

// String says how far they have come.
func (t *tally) String() string {
	return fmt.Sprintf("%d pods of %d have come, %d are there, %d of them bound", t.come, t.want, len(t.pods), t.bound)
}
