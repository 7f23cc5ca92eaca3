//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/tests/workload"
)

// ages asks relays for any state all the time, and holds the answers to the age that they
// declare.
type ages struct {
	answers atomic.Int64
	oldest  atomic.Int64 // in seconds, of those below an hour

	mu    sync.Mutex
	acked []acknowledged // in order
	wrong []error
}

// acknowledged is the newest version that was acknowledged until a moment.
type acknowledged struct {
	at      time.Time
	version uint64
}

func declareAges(t *testing.T, l *load) *ages {
	t.Helper()
	a := &ages{}
	l.outages.onAcknowledged(a.note)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, s := range l.servers {
		direct := workload.NewClient(t, s.config, client.Options{ReadIdleTimeout: time.Second, PingTimeout: time.Second, Retry: client.RetryOptions{Max: -1}})
		running.Go(func() {
			defer direct.CloseIdleConnections()
			for ; ctx.Err() == nil; workload.Wait(ctx, 50*time.Millisecond) {
				a.ask(ctx, s.name, direct)
			}
		})
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	return a
}

func (a *ages) note(at time.Time, version uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.acked); n > 0 {
		version = max(version, a.acked[n-1].version)
	}
	a.acked = append(a.acked, acknowledged{at, version})
}

// before is the newest version that was acknowledged before a moment.
func (a *ages) before(moment time.Time) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, _ := slices.BinarySearchFunc(a.acked, moment, func(e acknowledged, m time.Time) int { return e.at.Compare(m) })
	if i == 0 {
		return 0
	}
	return a.acked[i-1].version
}

func (a *ages) ask(ctx context.Context, relay string, c *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) //passes: the relay may be gone, and is asked again
	defer cancel()
	asked := time.Now()
	age, version, err := anyState(ctx, c)
	if err != nil {
		return
	}
	a.answers.Add(1)
	if age < 3600 {
		a.oldest.Store(max(a.oldest.Load(), int64(age)))
	}
	// The age is in whole seconds, rounded down.
	moment := asked.Add(-time.Duration(age+1) * time.Second)
	if want := a.before(moment); version < want {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.wrong = append(a.wrong, fmt.Errorf("%s shows version %d, %d s old, and %d was acknowledged before that", relay, version, age, want))
	}
}

// anyState lists any state, and returns the age that is declared.
func anyState(ctx context.Context, c *client.Client) (age int, version uint64, err error) {
	response, err := c.Raw(ctx, client.RawRequest{Path: "/api/v1/namespaces/default/configmaps?resourceVersion=0"})
	if err != nil {
		return 0, 0, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return 0, 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, 0, errors.New(response.Status)
	}
	if age, err = strconv.Atoi(response.Header.Get("Age")); err != nil {
		return 0, 0, err
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(body, &list); err != nil {
		return 0, 0, err
	}
	version, err = strconv.ParseUint(list.ResourceVersion, 10, 64)
	return age, version, err
}

func (a *ages) check(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, err := range a.wrong[:min(len(a.wrong), 5)] {
		t.Error(err)
	}
	t.Logf("%d lists of any state, the oldest of %d s as declared; %d were older than that", a.answers.Load(), a.oldest.Load(), len(a.wrong))
	if a.answers.Load() == 0 {
		t.Error("no list of any state was answered")
	}
}
