package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/benchmarks/workload"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// serve is the server's process: Levelwire's server with pods that were put
// into its store, and beside it a stub that sends canned events, so that the
// speed of a server does not bound the speed of a client. It says on standard
// output where they are, and ends with standard input.
func serve(ctx context.Context, t task) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	store, err := memory.Open(memory.Options{})
	if err != nil {
		return err
	}
	f := &filled{store: store, revisions: make([]storage.Revision, t.Count)}
	for i := range t.Count {
		if err := f.write(ctx, i, true); err != nil {
			return err
		}
	}
	s, err := server.Listen(server.Config{
		DataDir: t.Dir, SecurePort: server.AnyPort, Logger: slog.New(slog.DiscardHandler),
		CompactionInterval: -1, SelfCheckInterval: -1,
		OpenStore: func(context.Context) (storage.Store, error) { return store, nil },
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-ended:
		return err
	}
	stub, err := newStub()
	if err != nil {
		return err
	}
	canned, err := listen(ctx, stub)
	if err != nil {
		return err
	}
	control, err := listen(ctx, f)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(task{Kubeconfig: s.Kubeconfig(), Canned: canned, Control: control}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
	stop()
	return <-ended
}

// listen serves h until the process ends.
func listen(ctx context.Context, h http.Handler) (address string, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		if err := http.Serve(l, h); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "clientbench:", err)
		}
	}()
	return "http://" + l.Addr().String(), nil
}

// filled is a store with pods in it. It changes them when it is asked to.
type filled struct {
	store     *memory.Store
	revisions []storage.Revision
}

// write puts the i-th pod into the store.
func (f *filled) write(ctx context.Context, i int, ready bool) error {
	p := workload.Pod(i, ready)
	p.Kind, p.APIVersion = "Pod", "v1"
	value, err := stored(p)
	if err != nil {
		return err
	}
	key := "/registry/pods/" + p.Namespace + "/" + p.Name
	if f.revisions[i] == 0 {
		f.revisions[i], err = f.store.Create(ctx, key, value, 0)
	} else {
		f.revisions[i], err = f.store.Update(ctx, key, value, f.revisions[i], 0)
	}
	return err
}

// stored is an object as the server stores it: kind and apiVersion first.
func stored(p *corev1.Pod) ([]byte, error) {
	body, err := json.Marshal(struct {
		Kind       string           `json:"kind"`
		APIVersion string           `json:"apiVersion"`
		Metadata   any              `json:"metadata"`
		Spec       corev1.PodSpec   `json:"spec"`
		Status     corev1.PodStatus `json:"status"`
	}{p.Kind, p.APIVersion, p.ObjectMeta, p.Spec, p.Status})
	return body, err
}

// ServeHTTP changes the first ?n= pods.
func (f *filled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	for i := 0; err == nil && i < n; i++ {
		err = f.write(r.Context(), i, i%2 == 0)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
