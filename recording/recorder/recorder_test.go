package recorder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/recording"
	"github.com/levelwire/levelwire/recording/recorder"
)

// recorded is a recording that is being made.
type recorded struct {
	t       *testing.T
	path    string
	stop    context.CancelFunc
	ended   chan error
	reached chan int64     // the version that has been written
	stats   recorder.Stats // when it has ended
}

// begin records until end is called, and returns when the state at the start is complete.
func begin(t *testing.T, c *client.Client, opts recorder.Options) *recorded {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &recorded{t: t, path: filepath.Join(t.TempDir(), "cluster.lwr"), stop: cancel, ended: make(chan error, 1)}
	started := make(chan struct{})
	r.reached = make(chan int64, 1)
	opts.Progress = func(s recorder.Stats) {
		if s.Started && started != nil {
			close(started)
			started = nil
		}
		select {
		case <-r.reached:
		default:
		}
		r.reached <- s.Revision
	}
	wait := started
	go func() {
		var err error
		r.stats, err = recorder.Record(ctx, c, r.path, opts)
		r.ended <- err
	}()
	select {
	case <-wait:
	case err := <-r.ended:
		t.Fatal("the recording ended:", err)
	}
	return r
}

// await waits until a version has been written.
func (r *recorded) await(version string) {
	r.t.Helper()
	for {
		select {
		case reached := <-r.reached:
			if want, err := strconv.ParseInt(version, 10, 64); err != nil || reached >= want {
				return
			}
		case <-r.t.Context().Done():
			r.t.Fatal("the version was not written")
		}
	}
}

// end ends the recording and opens it.
func (r *recorded) end() *recording.Reader {
	r.t.Helper()
	r.stop()
	check(r.t, <-r.ended)
	file, err := recording.Open(r.path)
	check(r.t, err)
	r.t.Cleanup(func() { check(r.t, file.Close()) })
	if err := file.Check(); err != nil {
		r.t.Fatal(err)
	}
	return file
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// configMap writes a ConfigMap.
func configMap(t *testing.T, c *client.Client, name, value string) *corev1.ConfigMap {
	t.Helper()
	maps := client.For[*corev1.ConfigMap](c).Namespace("default")
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value}}
	created, err := maps.Create(t.Context(), o, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		created, err = maps.UpdateWithRetry(t.Context(), name, func(o *corev1.ConfigMap) error {
			o.Data["value"] = value
			return nil
		})
	}
	check(t, err)
	return created
}

// changes returns the recorded changes of one resource as "key value", or "key gone",
// and compares the versions with those of the objects.
func changes(t *testing.T, file *recording.Reader, resource string) (list []string) {
	t.Helper()
	for cursor := file.After(0); ; {
		e, err := cursor.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		check(t, err)
		if e.Type != recording.Set && e.Type != recording.Delete || file.Resources()[e.Resource].String() != resource {
			continue
		}
		if e.Type == recording.Delete {
			list = append(list, e.Key+" gone")
			continue
		}
		var o corev1.ConfigMap
		check(t, json.Unmarshal(e.Value, &o))
		if o.ResourceVersion != fmt.Sprint(e.Revision) || o.Kind != "ConfigMap" {
			t.Errorf("at %d: %s", e.Revision, e.Value)
		}
		list = append(list, e.Key+" "+o.Data["value"])
	}
}

// state returns the keys of the objects at the start, by resource.
func state(t *testing.T, file *recording.Reader) map[string][]string {
	t.Helper()
	keys := map[string][]string{}
	start, _ := file.Start()
	_, err := file.Checkpoint(start, func(o recording.Object) error {
		resource := file.Resources()[o.Resource].String()
		keys[resource] = append(keys[resource], o.Key)
		return nil
	})
	check(t, err)
	return keys
}

// TestRecord records a server on which something happens.
func TestRecord(t *testing.T) {
	t.Parallel()
	server := levelwiretest.Start(t)
	c := server.Client(client.Options{})
	configMap(t, c, "before", "1")
	_, err := client.For[*corev1.Secret](c).Namespace("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "hidden"}, StringData: map[string]string{"password": "correct horse"},
	}, metav1.CreateOptions{})
	check(t, err)

	r := begin(t, c, recorder.Options{Exclude: []string{"leases"}})
	configMap(t, c, "a", "1")
	configMap(t, c, "before", "2")
	check(t, client.For[*corev1.ConfigMap](c).Namespace("default").Delete(t.Context(), "a", metav1.DeleteOptions{}))
	last := configMap(t, c, "b", "1")
	r.await(last.ResourceVersion)
	file := r.end()

	if got, want := changes(t, file, "configmaps"), []string{"default/a 1", "default/before 2", "default/a gone", "default/b 1"}; !slices.Equal(got, want) {
		t.Errorf("recorded are %q instead of %q", got, want)
	}
	keys := state(t, file)
	if !slices.Contains(keys["configmaps"], "default/before") || !slices.Contains(keys["namespaces"], "default") {
		t.Error("at the start there are", keys)
	}
	for resource := range keys {
		if resource == "secrets" || resource == "leases.coordination.k8s.io" {
			t.Error(resource, "are recorded")
		}
	}
	left := fmt.Sprint(file.Info().LeftOut)
	if !strings.Contains(left, "secrets") || !strings.Contains(left, "leases") {
		t.Error("left out are", left)
	}
	if file.Info().Server == "" || file.Info().ServerVersion == "" || r.stats.Late != 0 || r.stats.Gaps != 0 {
		t.Errorf("%+v %+v", file.Info(), r.stats)
	}
}

// TestSecretsIfAskedFor records secrets, and nothing else.
func TestSecretsIfAskedFor(t *testing.T) {
	t.Parallel()
	server := levelwiretest.Start(t)
	c := server.Client(client.Options{})
	_, err := client.For[*corev1.Secret](c).Namespace("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
	check(t, err)
	file := begin(t, c, recorder.Options{Resources: []string{"secret"}, Secrets: true, Namespaces: []string{"default"}}).end()
	if keys := state(t, file); len(keys) != 1 || !slices.Contains(keys["secrets"], "default/s") {
		t.Error(keys)
	}
}

// TestWrongResource asks for what there is not.
func TestWrongResource(t *testing.T) {
	t.Parallel()
	c := levelwiretest.Start(t).Client(client.Options{})
	_, err := recorder.Record(t.Context(), c, filepath.Join(t.TempDir(), "file"), recorder.Options{Resources: []string{"gadgets"}})
	if err == nil || !strings.Contains(err.Error(), "gadgets") {
		t.Error(err)
	}
}

// TestEmptyListsAreRefused: a program that has computed that there is nothing to record must not record
// everything.
func TestEmptyListsAreRefused(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "http://127.0.0.1:1"}, client.Options{}) // which is not asked
	check(t, err)
	path := filepath.Join(t.TempDir(), "cluster.lwr")
	for want, opts := range map[string]recorder.Options{
		"Options.Resources is an empty list":   {Resources: []string{}},
		"Options.Namespaces is an empty list":  {Namespaces: []string{}},
		"Options.Namespaces has an empty name": {Namespaces: []string{"shop", ""}},
	} {
		if _, err := recorder.Record(t.Context(), c, path, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", opts, err, want)
		}
	}
}
