package storageprotection

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/wait"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestManyClaims: the end of a claim costs what the pods do that use it. When the server was asked for all pods of the
// namespace, as many claims as pods took a list of all pods each.
func TestManyClaims(t *testing.T) {
	const many = 20
	s := levelwiretest.Start(t)
	var lists atomic.Int64
	account, err := client.New(s.Config(), client.Options{WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		return counted(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				lists.Add(1)
			}
			return next.RoundTrip(r)
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(account.CloseIdleConnections)
	cl := s.Client(client.Options{})
	run(t, account, cl)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	claims := client.For[*corev1.PersistentVolumeClaim](cl).Namespace("default")
	var names []string
	for i := range many {
		names = append(names, fmt.Sprint("claim-", i))
	}
	for _, name := range names {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{claimFinalizer}}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
		if _, err := claims.Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := claims.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if err := wait.UntilDeleted(ctx, claims, name, ""); err != nil {
			t.Fatal(name, err)
		}
	}
	if n := lists.Load(); n > 0 {
		t.Errorf("%d lists for %d claims", n, many)
	}
}

type counted func(*http.Request) (*http.Response, error)

func (f counted) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// run runs the controller as an account, with the informers of another client.
func run(t *testing.T, account, informers *client.Client) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	factory := informer.NewFactory(informers, informer.Options{Logger: log})
	source, err := pods.NewSource(factory)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClaims(account, factory, source, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	factory.Start(ctx)
	go func() {
		defer close(ended)
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		factory.Shutdown()
	})
}
