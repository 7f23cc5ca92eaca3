package server_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

var (
	costObjects = flag.Int("history.objects", 0, "measure what history costs beside so many pods (docs/operators/history.md)")
	costChanges = flag.Int("history.changes", 32768, "how many changes the history has")
)

// TestCostOfHistory measures the numbers in docs/operators/history.md. It checks
// nothing.
func TestCostOfHistory(t *testing.T) {
	if *costObjects == 0 {
		t.Skip("-history.objects is not set")
	}
	dir := t.TempDir()
	start(t, server.Config{DataDir: dir}).stop(t)
	at := filepath.Join(dir, "etcd")
	begin := processorTime()
	store := embedded(t, at)
	writePods(t, store)
	made, err := store.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, store)
	t.Logf("%d pods: %s; CPU %v", *costObjects, diskOf(t, at), processorTime()-begin)
	store = embedded(t, at)
	if err := store.Compact(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	closeStore(t, store)
	costOfStart(t, dir, made, "without history")

	begin = processorTime()
	store = embedded(t, at)
	changePods(t, store)
	closeStore(t, store)
	t.Logf("after %d changes: %s; CPU %v", *costChanges, diskOf(t, at), processorTime()-begin)
	costOfStart(t, dir, made+1, "with history")
	costOfCompaction(t, at)
	t.Logf("compacted: %s", diskOf(t, at))
}

func embedded(t *testing.T, dir string) *etcd.Store {
	t.Helper()
	store, err := etcd.Embed(t.Context(), etcd.EmbedConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func closeStore(t *testing.T, store *etcd.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// storedPod is a pod of 3 kB as it is stored.
func storedPod(t *testing.T, i, change int) (string, []byte) {
	name := fmt.Sprintf("pod-%06d", i)
	pod := corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{"app": fmt.Sprint(i % 100), "change": fmt.Sprint(change)},
			Annotations: map[string]string{"fill": strings.Repeat(fmt.Sprintf("%07d ", i+change), 330)},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprint("node-", i%1000), Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	value, err := json.Marshal(&pod)
	if err != nil {
		t.Error(err)
	}
	return "/registry/pods/default/" + name, value
}

// together runs work for 0 to count-1, 64 at a time.
func together(t *testing.T, count int, work func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	const workers = 64
	for w := range workers {
		group.Go(func() error {
			for i := w; i < count; i += workers {
				if err := work(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func writePods(t *testing.T, store *etcd.Store) {
	together(t, *costObjects, func(ctx context.Context, i int) error {
		key, value := storedPod(t, i, 0)
		_, err := store.Create(ctx, key, value, 0)
		return err
	})
}

// changePods spreads the changes over the pods.
func changePods(t *testing.T, store *etcd.Store) {
	together(t, min(*costChanges, *costObjects), func(ctx context.Context, i int) error {
		for n := i; n < *costChanges; n += *costObjects {
			key, value := storedPod(t, i, n+1)
			kv, err := store.Get(ctx, key, 0)
			if err == nil {
				_, err = store.Update(ctx, key, value, kv.Modified, 0)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func diskOf(t *testing.T, dir string) string {
	t.Helper()
	sizes := map[string]int64{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			sizes[filepath.Base(filepath.Dir(path))] += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("database %d MB, log %d MB", sizes["snap"]>>20, sizes["wal"]>>20)
}

// processorTime is the processor time that the process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Round(time.Millisecond)
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc >> 20
}

// costOfStart starts a server, and resumes a watch from the oldest revision, which
// waits for the backfill.
func costOfStart(t *testing.T, dir string, oldest storage.Revision, what string) {
	t.Helper()
	ctx := t.Context()
	runtime.GC()
	cpu, begin := processorTime(), time.Now()
	s := start(t, server.Config{DataDir: dir, CompactionInterval: -1, SelfCheckInterval: -1})
	readyCPU, ready := processorTime()-cpu, time.Since(begin)
	pods := client.For[*corev1.Pod](s.client(t))
	var answered time.Duration
	for answered == 0 {
		w, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(oldest), AllowWatchBookmarks: true, FieldSelector: "metadata.name=none"})
		if err != nil {
			t.Log("again:", err)
			continue
		}
		answered = time.Since(begin)
		w.Close()
	}
	t.Logf("a start %s: ready after %v, CPU %v; the past is known after %v, CPU %v; heap %d MB",
		what, ready.Round(time.Millisecond), readyCPU, answered.Round(time.Millisecond), processorTime()-cpu, heap())
	s.stop(t)
}

// costOfCompaction creates objects one after the other, before a compaction and
// while it runs.
func costOfCompaction(t *testing.T, dir string) {
	store := embedded(t, dir)
	defer closeStore(t, store)
	n := 0
	create := func(window time.Duration) string {
		var took []time.Duration
		cpu := processorTime()
		for end := time.Now().Add(window); time.Now().Before(end); n++ { //passes: it writes for so long
			key, value := storedPod(t, 1_000_000+n, 0)
			begin := time.Now()
			if _, err := store.Create(t.Context(), key, value, 0); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
		slices.Sort(took)
		at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100].Round(10 * time.Microsecond) }
		return fmt.Sprintf("%d creates, p50 %v, p99 %v, max %v, CPU %v", len(took), at(50), at(99), at(100), processorTime()-cpu)
	}
	const window = 4 * time.Second
	before := create(window)
	current, err := store.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Compact(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	t.Logf("creates before a compaction: %s", before)
	t.Logf("creates after its beginning: %s", create(window))
	t.Logf("and after that: %s", create(window))
}
