package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// removers is how many pods that are to end are removed at a time: what the kubelets of the nodes do.
const removers = 32

// follower sees what becomes of the pods, and removes those that are to end.
type follower struct {
	client            kubernetes.Interface
	allBound, allGone chan struct{} // closed when it was so
	bound, gone       sync.Once
	failed            chan error // why it cannot go on
	cancel            context.CancelFunc
	running           sync.WaitGroup
	ending            chan types.NamespacedName

	mu    sync.Mutex
	tally *tally
}

// follow watches the pods of the namespace from now on. There are to be as many as want.
func follow(ctx context.Context, client kubernetes.Interface, want int) (*follower, error) {
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if len(list.Items) > 0 {
		return nil, fmt.Errorf("there are %d pods already", len(list.Items))
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{client: client, allBound: make(chan struct{}), allGone: make(chan struct{}), failed: make(chan error, 1+removers), cancel: cancel,
		ending: make(chan types.NamespacedName, 2*want), tally: newTally(want)}
	f.running.Go(func() {
		defer close(f.ending)
		if err := f.watch(ctx, list.ResourceVersion); err != nil {
			f.failed <- err
		}
	})
	for range removers {
		f.running.Go(func() {
			for pod := range f.ending {
				if err := f.remove(ctx, pod); err != nil {
					f.failed <- err
					return
				}
			}
		})
	}
	return f, nil
}

// stop ends the watch.
func (f *follower) stop() {
	f.cancel()
	f.running.Wait()
}

// watch sees every change after a version. kube-apiserver ends the watch of a client that is slower than it sends for a
// moment, so a watch that has ended goes on from the last version, as in every client.
func (f *follower) watch(ctx context.Context, version string) error {
	for ctx.Err() == nil {
		watching, err := f.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		version, err = f.seeAll(ctx, watching.ResultChan(), version)
		watching.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// seeAll sees the events of one watch until it ends, and returns the version of the last one.
func (f *follower) seeAll(ctx context.Context, events <-chan watch.Event, version string) (last string, err error) {
	for {
		select {
		case event, open := <-events:
			if !open {
				return version, nil
			}
			if event.Type == watch.Error {
				return version, apierrors.FromObject(event.Object)
			}
			pod, isPod := event.Object.(*corev1.Pod)
			if !isPod {
				return version, fmt.Errorf("an event %s has a %T", event.Type, event.Object)
			}
			f.see(ctx, event.Type, pod)
			version = pod.ResourceVersion
		case <-ctx.Done():
			return version, nil
		}
	}
}

// see counts an event.
func (f *follower) see(ctx context.Context, kind watch.EventType, pod *corev1.Pod) {
	f.mu.Lock()
	ends := f.tally.add(kind, pod)
	isBound, isGone := f.tally.isBound(), f.tally.isGone()
	f.mu.Unlock()
	if ends {
		select {
		case f.ending <- types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}:
		case <-ctx.Done():
		}
	}
	if isBound {
		f.bound.Do(func() { close(f.allBound) })
	}
	if isGone {
		f.gone.Do(func() { close(f.allGone) })
	}
}

// remove does what a kubelet does when the containers of a pod have ended.
func (f *follower) remove(ctx context.Context, pod types.NamespacedName) error {
	err := f.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if apierrors.IsNotFound(err) || ctx.Err() != nil {
		return nil
	}
	return err
}

// await waits until something is done, a program has ended that should run, or it takes too long.
func (f *follower) await(ctx context.Context, done <-chan struct{}, failure func() error, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it takes longer than %v", limit))
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case err := <-f.failed:
			return err
		case <-tick.C:
			if err := failure(); err != nil {
				return err
			}
		case <-ctx.Done():
			f.mu.Lock()
			defer f.mu.Unlock()
			return fmt.Errorf("%w: %s", context.Cause(ctx), f.tally)
		}
	}
}
