package workload

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// Timeout is how long anything may take once there is no fault, on a machine that has
// much else to do.
const Timeout = 5 * time.Minute

// slow is how long informers usually take much less than to agree.
const slow = 20 * time.Second

// Agree waits until every informer and every handler shows what the server has, which must
// be what it has acknowledged. There must be no writes meanwhile: see Journal.Quiet.
func Agree(t *testing.T, direct *client.Client, j *Journal, subjects []Subject) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	defer cancel()
	now := func() (State, error) {
		list, err := client.For[*corev1.ConfigMap](direct).List(ctx, metav1.ListOptions{LabelSelector: Selector})
		for err != nil && ctx.Err() == nil {
			Wait(ctx, time.Second)
			list, err = client.For[*corev1.ConfigMap](direct).List(ctx, metav1.ListOptions{LabelSelector: Selector})
		}
		if err != nil {
			return nil, fmt.Errorf("the server does not list: %w", err)
		}
		all := State{}
		for _, obj := range list.Items {
			all[KeyOf(obj)] = StampOf(obj)
		}
		return all, j.compare(all)
	}
	for _, s := range subjects {
		begun := time.Now()
		if err := s.Agree(ctx, now); err != nil {
			t.Errorf("%s: %v", s.Describe(), err)
		}
		if took := time.Since(begun); took > slow { //passes: it is logged
			t.Logf("%s agreed after %v", s.Describe(), took)
		}
	}
}

// ListsOf is how often each informer has listed, and why, for OnlyThese.
func ListsOf(subjects []Subject) (lists []map[reflector.ListCause]int64) {
	for _, s := range subjects {
		lists = append(lists, s.Stats().Lists)
	}
	return lists
}

// OnlyThese fails the test if informers have listed again since ListsOf, or asked for a
// difference: while history reaches back, they resume.
func OnlyThese(t *testing.T, subjects []Subject, first []map[reflector.ListCause]int64) {
	t.Helper()
	OnlyTheseAndDifferences(t, subjects, first)
	for _, s := range subjects {
		if stats := s.Stats(); len(stats.Differences) > 0 {
			t.Errorf("asked for differences, %v: %s", stats.Differences, s.Describe())
		}
	}
}

// OnlyTheseAndDifferences fails the test if informers have listed again since ListsOf. They
// may have asked for a difference: a server that was away for longer than history reaches
// back fills its caches anew, and cannot resume a client that another server has brought
// to a version of that gap.
func OnlyTheseAndDifferences(t *testing.T, subjects []Subject, first []map[reflector.ListCause]int64) {
	t.Helper()
	for i, s := range subjects {
		if stats := s.Stats(); !maps.Equal(stats.Lists, first[i]) {
			t.Errorf("listed %v at first, and then %v: %s", first[i], stats.Lists, s.Describe())
		}
	}
}

// Reloads is how often the clients of subjects have used rotated credentials.
func Reloads(subjects []Subject) (n int64) {
	for _, s := range subjects {
		n += s.Reloads()
	}
	return n
}

// StopAll stops informers, and returns when their clients have no connections.
func StopAll(subjects []Subject) {
	for _, s := range subjects {
		s.Stop()
	}
}

// NewClient is client.New, which must not fail.
func NewClient(t *testing.T, config *rest.Config, opts client.Options) *client.Client {
	t.Helper()
	c, err := client.New(config, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Await waits until holds does, and fails the test after Timeout, with what it has waited for.
func Await(t *testing.T, what func() string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); Wait(t.Context(), 10*time.Millisecond) {
		if time.Since(begun) > Timeout {
			t.Fatalf("waited in vain: %s", what())
		}
	}
}
