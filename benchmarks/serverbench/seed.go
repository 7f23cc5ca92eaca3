package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/benchmarks/workload"
	"github.com/levelwire/levelwire/storage/etcd"
)

// seeding is how many writes are under way at once while pods are put into a
// store.
const seeding = 512

// seedTask is which pods are put where.
type seedTask struct {
	Side, Dir string
	From, To  int
}

// seeded returns the folder of a side's data with so many pods. Data are made
// when they are first asked for, and stay for later requests.
func (b *bench) seeded(ctx context.Context, side string, objects int) (string, error) {
	return b.seededIn(ctx, fmt.Sprintf("%s-%d", side, objects), side, objects)
}

// seededIn is seeded for data that are written to, in a folder with a name of
// its own.
func (b *bench) seededIn(ctx context.Context, name, side string, objects int) (string, error) {
	dir := filepath.Join(b.dir, name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	begun := time.Now()
	var written int
	err := process.Run(ctx, b.dir, "seed", seedTask{Side: side, Dir: tested.EtcdDir(side, dir), To: objects}, &written)
	if err != nil {
		return "", fmt.Errorf("put %d pods into the store: %w", objects, err)
	}
	b.progress("%s: %d pods in the store after %v", side, written, time.Since(begun).Round(100*time.Millisecond))
	return dir, nil
}

// seed writes pods into a store before a server runs on it. The objects are the
// same for all sides, each in the form in which the side's server stores it.
func seed(ctx context.Context, p *process.Parent) error {
	var task seedTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	if err := os.MkdirAll(task.Dir, 0o700); err != nil {
		return err
	}
	store, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: task.Dir})
	if err != nil {
		return err
	}
	encode := encoding(task.Side)
	group, ctx := errgroup.WithContext(ctx)
	for w := range seeding {
		group.Go(func() error {
			for i := task.From + w; i < task.To; i += seeding {
				value, err := encode(i)
				if err != nil {
					return err
				}
				key := "/registry/pods/" + workload.Namespace(i) + "/" + workload.Name(i)
				if _, err := store.Create(ctx, key, value, 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	return p.Send(task.To - task.From)
}

// encoding returns the function that encodes the i-th pod as a side stores it:
// Levelwire in JSON, kube-apiserver in protobuf.
func encoding(side string) func(i int) ([]byte, error) {
	var serializer runtime.Encoder = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	if side == tested.Ours {
		serializer = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
	}
	return func(i int) ([]byte, error) {
		pod := workload.Small(i)
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		value, err := runtime.Encode(serializer, pod)
		return bytes.TrimSpace(value), err
	}
}
