package leader

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOptionsAreChecked(t *testing.T) {
	for name, opts := range map[string]Options{
		"no name":                           {Namespace: "ns"},
		"no namespace":                      {Name: "it"},
		"deadline as long as the lease":     {Namespace: "ns", Name: "it", LeaseDuration: 10 * time.Second},
		"retries hardly before deadline":    {Namespace: "ns", Name: "it", RetryPeriod: 9 * time.Second},
		"negative retry period":             {Namespace: "ns", Name: "it", RetryPeriod: -time.Second},
		"negative lease, negative deadline": {Namespace: "ns", Name: "it", LeaseDuration: -1, RenewDeadline: -2},
	} {
		if _, err := New(nil, opts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	a, b := Options{Namespace: "ns", Name: "it"}, Options{Namespace: "ns", Name: "it"}
	if a.complete() != nil || b.complete() != nil || a.Identity == b.Identity || a.Identity == "" {
		t.Errorf("identities %q and %q", a.Identity, b.Identity)
	}
}

// A duration of a fraction of a second is rounded up to a whole one in the
// Lease.
func TestLeaseDurationIsRoundedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		e := candidate(t, "a", line{store: s}, func(o *Options) {
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = 1200*time.Millisecond, time.Second, 100*time.Millisecond
		})
		if held, err := e.try(t.Context()); !held || err != nil {
			t.Fatal(held, err)
		}
		if lease, _ := s.get(); *lease.Spec.LeaseDurationSeconds != 2 {
			t.Errorf("%d seconds", *lease.Spec.LeaseDurationSeconds)
		}
		other := candidate(t, "b", line{store: s})
		if held, _ := other.try(t.Context()); held || other.left() != 2*time.Second {
			t.Errorf("held %v, another waits %v", held, other.left())
		}
	})
}

// Candidates that wait do not all ask at the same time, and ask again as soon
// as the Lease runs out.
func TestCandidatesWaitWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		if held, err := candidate(t, "a", line{store: s}).try(t.Context()); !held || err != nil {
			t.Fatal(held, err)
		}
		e := candidate(t, "b", line{store: s})
		if held, err := e.try(t.Context()); held || err != nil {
			t.Fatal(held, err)
		}
		different := map[time.Duration]bool{}
		for range 100 {
			d := e.pause()
			if d < DefaultRetryPeriod || d > DefaultRetryPeriod+DefaultRetryPeriod/5 {
				t.Errorf("waits %v", d)
			}
			different[d] = true
		}
		if len(different) < 50 {
			t.Errorf("%d different waits of 100", len(different))
		}
		time.Sleep(DefaultLeaseDuration - time.Second)
		if d := e.pause(); d < time.Second || d > time.Second+DefaultRetryPeriod/5 {
			t.Errorf("a second before the end it waits %v", d)
		}
	})
}

func TestNilLoggerIsTheDefaultOne(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	opts := Options{Namespace: "ns", Name: "it"}
	if err := opts.complete(); err != nil {
		t.Fatal(err)
	}
	opts.Logger.Info("leads")
	if !strings.Contains(log.String(), "lease=ns/it") {
		t.Errorf("logged: %s", log.String())
	}
}
