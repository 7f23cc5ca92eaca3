package recording_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/recording"
	"github.com/levelwire/levelwire/recording/recorder"
	"github.com/levelwire/levelwire/recording/replay"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rollout creates, changes and deletes ConfigMaps, and returns the version of the last
// change.
func rollout(t *testing.T, c *client.Client) string {
	t.Helper()
	maps := client.For[*corev1.ConfigMap](c).Namespace("default")
	last := ""
	for i := range 60 {
		name := fmt.Sprint("m", i%7)
		o, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"parity": fmt.Sprint(i % 2)}}, Data: map[string]string{"n": fmt.Sprint(i)}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) && i%3 == 0 {
			check(t, maps.Delete(t.Context(), name, metav1.DeleteOptions{}))
			continue
		} else if apierrors.IsAlreadyExists(err) {
			o, err = maps.UpdateWithRetry(t.Context(), name, func(o *corev1.ConfigMap) error {
				o.Data["n"] = fmt.Sprint(i)
				return nil
			})
		}
		check(t, err)
		last = o.ResourceVersion
	}
	return last
}

// record records a server while work runs, and until the version that it returns has
// been written, and returns the file.
func record(t *testing.T, c *client.Client, work func() (version string)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.lwr")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reached, ended := make(chan int64), make(chan error, 1)
	go func() {
		_, err := recorder.Record(ctx, c, path, recorder.Options{Progress: func(s recorder.Stats) {
			select {
			case reached <- s.Revision:
			case <-ctx.Done():
			}
		}})
		ended <- err
	}()
	await := func(version int64) {
		for {
			select {
			case at := <-reached:
				if at >= version {
					return
				}
			case err := <-ended:
				t.Fatal("the recording ended:", err)
			}
		}
	}
	await(1)
	version, err := strconv.ParseInt(work(), 10, 64)
	check(t, err)
	await(version)
	cancel()
	check(t, <-ended)
	return path
}

// serve replays a file and returns a client of it, and what plays.
func serve(t *testing.T, path string) (*client.Client, *replay.Player) {
	t.Helper()
	r, err := recording.Open(path)
	check(t, err)
	t.Cleanup(func() { check(t, r.Close()) })
	store, player, unserved, err := replay.Open(r, replay.Options{Layout: server.StorageLayout()})
	check(t, err)
	if len(unserved) > 0 {
		t.Error("not served are", unserved)
	}
	s := levelwiretest.Start(t, func(c *server.Config) {
		c.ReadOnly, c.Logger = true, slog.New(slog.DiscardHandler)
		c.OpenStore = func(context.Context) (storage.Store, error) { return store, nil }
	})
	ctx, cancel := context.WithCancel(context.Background())
	var playing sync.WaitGroup
	playing.Go(func() { _ = player.Run(ctx) })
	t.Cleanup(func() { cancel(); playing.Wait() })
	return s.Client(client.Options{}), player
}

// follow returns the events of the ConfigMaps in default after a version, up to another.
func follow(t *testing.T, c *client.Client, after, through string) (events []string) {
	t.Helper()
	w, err := client.For[*corev1.ConfigMap](c).Namespace("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: after})
	check(t, err)
	for e, err := range w.Events() {
		check(t, err)
		if e.Type == watch.Bookmark {
			continue
		}
		o := e.Object
		events = append(events, fmt.Sprint(e.Type, " ", o.Name, " ", o.ResourceVersion, " ", o.UID, " ", o.Data, o.Labels))
		if o.ResourceVersion == through {
			return events
		}
	}
	t.Fatal("the watch ended")
	return nil
}

// listVersion is the version of the ConfigMaps of a server.
func listVersion(t *testing.T, c *client.Client) string {
	t.Helper()
	list, err := client.For[*corev1.ConfigMap](c).List(t.Context(), metav1.ListOptions{})
	check(t, err)
	return list.ResourceVersion
}

// TestReplayIsWhatWasRecorded compares the events of a watch of the replay with those
// of the recorded server.
func TestReplayIsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	original := levelwiretest.Start(t).Client(client.Options{})
	// A kind that is stored in another version than it is recorded in, and a secret.
	_, err := client.For[*autoscalingv1.HorizontalPodAutoscaler](original).Namespace("default").Create(t.Context(), &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "scaler"}, Spec: autoscalingv1.HorizontalPodAutoscalerSpec{MaxReplicas: 3, ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{Kind: "Deployment", Name: "d", APIVersion: "apps/v1"}},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = client.For[*corev1.Secret](original).Namespace("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"p": "correct-horse"}}, metav1.CreateOptions{})
	check(t, err)
	var want []string
	path := record(t, original, func() string {
		before := listVersion(t, original)
		last := rollout(t, original)
		want = follow(t, original, before, last)
		return last
	})
	c, player := serve(t, path)
	before := listVersion(t, c)
	if before != fmt.Sprint(player.Status().First) {
		t.Errorf("a list is at %s: %+v", before, player.Status())
	}
	check(t, player.Play(replay.MaxSpeed))
	got := follow(t, c, before, strings.Fields(want[len(want)-1])[2])
	if !slices.Equal(got, want) {
		t.Errorf("replayed:\n%s\nrecorded:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	scaler, err := client.For[*autoscalingv1.HorizontalPodAutoscaler](c).Namespace("default").Get(t.Context(), "scaler", metav1.GetOptions{})
	if err != nil || scaler.Spec.MaxReplicas != 3 {
		t.Errorf("%+v %v", scaler, err)
	}
	secrets, err := client.For[*corev1.Secret](c).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) > 0 {
		t.Errorf("%d secrets are replayed: %v", len(secrets.Items), err)
	}
	data, err := os.ReadFile(path)
	check(t, err)
	if strings.Contains(string(data), "correct-horse") {
		t.Error("a secret is in the file")
	}
	// An old state, from the file.
	exact, err := client.For[*corev1.ConfigMap](c).Namespace("default").List(t.Context(), metav1.ListOptions{ResourceVersion: before, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if err != nil || exact.ResourceVersion != before || slices.ContainsFunc(exact.Items, func(o *corev1.ConfigMap) bool { return strings.HasPrefix(o.Name, "m") }) {
		t.Errorf("the state before the changes: %+v %v", exact, err)
	}
}

// TestReplayRefusesWrites tries each verb, and what writes nothing.
func TestReplayRefusesWrites(t *testing.T) {
	t.Parallel()
	original := levelwiretest.Start(t).Client(client.Options{})
	c, _ := serve(t, record(t, original, func() string { return "0" }))
	maps := client.For[*corev1.ConfigMap](c).Namespace("default")
	_, created := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
	_, other := client.For[*appsv1.Deployment](c).Namespace("missing").Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
	deleted := client.For[*corev1.Namespace](c).Delete(t.Context(), "default", metav1.DeleteOptions{})
	collection := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	for _, err := range []error{created, other, deleted, collection} {
		if !apierrors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), "read-only") {
			t.Error(err)
		}
	}
}

// TestReplayOfWhatWasCutOff replays a file that ends in its last block of changes.
func TestReplayOfWhatWasCutOff(t *testing.T) {
	t.Parallel()
	original := levelwiretest.Start(t).Client(client.Options{})
	path := record(t, original, func() string { return rollout(t, original) })
	data, err := os.ReadFile(path)
	check(t, err)
	index := binary.LittleEndian.Uint64(data[len(data)-12:])
	check(t, os.WriteFile(path, data[:index-1], 0o600))
	cut, err := recording.Open(path)
	check(t, err)
	var damage *recording.DamageError
	if !errors.As(cut.Check(), &damage) || !damage.CutOff {
		t.Error("it is not noticed:", cut.Check())
	}
	check(t, cut.Close())
	c, player := serve(t, path)
	check(t, player.Play(replay.MaxSpeed))
	if _, err := client.For[*corev1.Namespace](c).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
