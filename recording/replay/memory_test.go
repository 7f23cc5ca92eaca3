package replay_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/recording"
	"github.com/levelwire/levelwire/recording/replay"
	"github.com/levelwire/levelwire/storage"
)

// TestConstantMemory writes 200 MB of changes to 2,000 objects, and replays them: the
// memory that is live in between does not grow with the recording.
func TestConstantMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 200 MB")
	}
	const objects, changes, size, most = 2000, 100_000, 2 << 10, 32 << 20
	path := filepath.Join(t.TempDir(), "large.lwr")
	w, err := recording.Create(path, recording.Info{}, recording.WriterOptions{})
	check(t, err)
	_, err = w.AddResource(recording.Resource{Version: "v1", Resource: "pods"})
	check(t, err)
	began := time.Unix(1_800_000_000, 0)
	check(t, w.EndState(1, began))
	random, filler := rand.New(rand.NewPCG(1, 2)), make([]byte, size/2)
	before, peak := live(), uint64(0)
	for i := range int64(changes) {
		for j := 0; j < len(filler); j += 64 {
			filler[j] = byte(random.Uint32()) // so that it does not compress to nothing
		}
		check(t, w.Event(recording.Entry{Type: recording.Set, Time: began.Add(time.Duration(i)), Revision: 2 + i, Created: 2, Key: fmt.Sprint("ns/", i%objects), Value: fmt.Appendf(nil, `{"n":%d,"x":"%x"}`, i, filler)}))
		if i%20_000 == 0 {
			peak = max(peak, live())
		}
	}
	check(t, w.Close())
	if peak > before+most {
		t.Errorf("writing kept %d MiB", (peak-before)>>20)
	}

	r, err := recording.Open(path)
	check(t, err)
	defer func() { check(t, r.Close()) }()
	s, p, _, err := replay.Open(r, replay.Options{Layout: layout})
	check(t, err)
	defer func() { check(t, s.Close()) }()
	check(t, p.Play(replay.MaxSpeed))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context()) }()
	stream, err := s.Watch(t.Context(), "/registry/", 1)
	check(t, err)
	before, peak = live(), 0
	for events, reached := 0, storage.Revision(0); reached < 1+changes; {
		batch, err := stream.Next()
		check(t, err)
		reached = batch.Revision
		for range batch.Events {
			if events++; events%20_000 == 0 {
				peak = max(peak, live())
			}
		}
	}
	check(t, <-ended)
	if peak > before+most {
		t.Errorf("replaying kept %d MiB", (peak-before)>>20)
	}
	page, err := s.List(t.Context(), "/registry/pods/", storage.ListOptions{KeysOnly: true})
	if err != nil || len(page.Items) != objects {
		t.Errorf("in the end there are %d objects: %v", len(page.Items), err)
	}
}

// live is the memory that is in use after a collection.
func live() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
