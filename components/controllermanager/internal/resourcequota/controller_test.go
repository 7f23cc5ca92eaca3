package resourcequota

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/wait"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	"github.com/levelwire/levelwire/internal/quota"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage/etcd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// run runs the controller against a server, with the rights that it has in a cluster.
func run(t *testing.T, s *levelwiretest.Server, recountAfter time.Duration, wrap ...transport.WrapperFunc) *Controller {
	t.Helper()
	connect := func(user string, groups ...string) *client.Client {
		config := s.UserConfig(user, groups...)
		for _, w := range wrap {
			config.Wrap(w)
		}
		cl, err := client.New(config, client.Options{ContentType: client.Protobuf})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.CloseIdleConnections)
		return cl
	}
	log := slog.New(slog.DiscardHandler)
	factory := informer.NewFactory(connect("system:kube-controller-manager"), informer.Options{Logger: log})
	source, err := pods.NewSource(factory)
	if err != nil {
		t.Fatal(err)
	}
	account := connect("system:serviceaccount:kube-system:resourcequota-controller", "system:serviceaccounts", "system:serviceaccounts:kube-system")
	c, err := New(account, factory, source, Options{RecountAfter: recountAfter, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	factory.Start(ctx)
	group.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		group.Wait()
		factory.Shutdown()
	})
	return c
}

func createQuota(t *testing.T, cl *client.Client, hard corev1.ResourceList) {
	t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if _, err := client.For[*corev1.ResourceQuota](cl).Namespace("default").Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await waits until the quota's status says that exactly this is used.
func await(t *testing.T, cl *client.Client, used corev1.ResourceList) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last corev1.ResourceQuotaStatus
	_, err := wait.Until(ctx, client.For[*corev1.ResourceQuota](cl).Namespace("default"), "q", func(q *corev1.ResourceQuota) bool {
		last = q.Status
		return quota.Equal(last.Used, used)
	})
	if err != nil {
		t.Fatalf("the status is %v, want %v to be used: %v", last, used, err)
	}
}

func createSecret(ctx context.Context, cl *client.Client, name string) error {
	_, err := client.For[*corev1.Secret](cl).Namespace("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// TestStatus: what exists is counted, what is deleted is taken off at once, and what is
// claimed stays claimed meanwhile.
func TestStatus(t *testing.T) {
	s := levelwiretest.Start(t)
	cl := s.Client(client.Options{})
	for i := range 3 {
		if err := createSecret(t.Context(), cl, fmt.Sprintf("c-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "1500m")}},
	}}}
	podsOf := client.For[*corev1.Pod](cl).Namespace("default")
	pod, err := podsOf.Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, time.Hour)
	// One config map is there: kube-root-ca.crt.
	createQuota(t, cl, amounts("count/secrets", "9", "pods", "5", "requests.cpu", "2", "count/configmaps", "9"))
	await(t, cl, amounts("count/secrets", "3", "pods", "1", "requests.cpu", "1500m", "count/configmaps", "1"))

	pod.Status.Phase = corev1.PodSucceeded
	if _, err = podsOf.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, cl, amounts("count/secrets", "3", "pods", "0", "requests.cpu", "0", "count/configmaps", "1"))
	if err := client.For[*corev1.Secret](cl).Namespace("default").Delete(t.Context(), "c-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, cl, amounts("count/secrets", "2", "pods", "0", "requests.cpu", "0", "count/configmaps", "1"))
}

// TestDevices: of claims of devices, the devices are counted, at first and when a claim
// is deleted.
func TestDevices(t *testing.T) {
	s := levelwiretest.Start(t)
	cl := s.Client(client.Options{})
	claims := client.For[*resourcev1.ResourceClaim](cl).Namespace("default")
	for _, name := range []string{"a", "b"} {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "a", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}},
		}}}}
		if _, err := claims.Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, time.Hour)
	createQuota(t, cl, amounts("gpu.deviceclass.resource.k8s.io/devices", "9", "count/resourceclaims.resource.k8s.io", "5"))
	await(t, cl, amounts("gpu.deviceclass.resource.k8s.io/devices", "4", "count/resourceclaims.resource.k8s.io", "2"))
	if err := claims.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, cl, amounts("gpu.deviceclass.resource.k8s.io/devices", "2", "count/resourceclaims.resource.k8s.io", "1"))
}

// TestClaimsThatWereLeft: a server has claimed and was killed. The next count after some
// quiet gives back what it has left.
func TestClaimsThatWereLeft(t *testing.T) {
	s := levelwiretest.Start(t)
	cl := s.Client(client.Options{})
	createQuota(t, cl, amounts("secrets", "9"))
	run(t, s, 300*time.Millisecond)
	await(t, cl, amounts("secrets", "0"))
	quotas := client.For[*corev1.ResourceQuota](cl).Namespace("default")
	for {
		q, err := quotas.Get(t.Context(), "q", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		q.Status.Used = amounts("secrets", "7")
		if _, err = quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err == nil {
			break
		} else if !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
	await(t, cl, amounts("secrets", "0"))
}

// TestThreeServers: writers of three servers on one etcd create and delete. There is
// never more than the quota allows, what deletions set free is given back, and what is used in the
// end is what there is.
func TestThreeServers(t *testing.T) {
	const allowed, writers, enough = 12, 64, 60
	store, err := etcd.Embed(t.Context(), etcd.EmbedConfig{Dir: t.TempDir(), ListenClientURL: "http://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	var servers []*levelwiretest.Server
	var clients []*client.Client
	for range 3 {
		s := levelwiretest.Start(t, func(c *server.Config) { c.Storage, c.EtcdServers = server.Etcd, []string{store.ClientURL()} })
		servers, clients = append(servers, s), append(clients, s.Client(client.Options{}))
	}
	createQuota(t, clients[0], amounts("count/secrets", fmt.Sprint(allowed)))
	run(t, servers[0], time.Second)
	for _, cl := range clients { // each has the status in its cache
		await(t, cl, amounts("count/secrets", "0"))
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	var group sync.WaitGroup
	var created, refused atomic.Int64
	for writer := range writers {
		cl := clients[writer%len(clients)]
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("c-%d-%d", writer, i)
				err := createSecret(t.Context(), cl, name) // to its end: what is cut off may still be written
				switch {
				case err == nil:
					if created.Add(1) >= enough {
						stop()
					}
					err = client.For[*corev1.Secret](cl).Namespace("default").Delete(t.Context(), name, metav1.DeleteOptions{})
				case apierrors.IsForbidden(err):
					refused.Add(1)
					continue
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	most := 0
	for ctx.Err() == nil {
		list, err := client.For[*corev1.Secret](clients[1]).Namespace("default").List(ctx, metav1.ListOptions{})
		if err == nil {
			most = max(most, len(list.Items))
		}
	}
	group.Wait()
	t.Logf("%d created, %d refused, at most %d at once", created.Load(), refused.Load(), most)
	if most > allowed {
		t.Errorf("there were %d, and the quota allows %d", most, allowed)
	}
	if created.Load() < enough {
		t.Errorf("only %d were created: what deletions set free was not given back", created.Load())
	}
	list, err := client.For[*corev1.Secret](clients[0]).Namespace("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, clients[0], amounts("count/secrets", fmt.Sprint(len(list.Items))))
}

// transportFunc is a transport.
type transportFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transportFunc) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// TestKindThatIsNotListed: while the objects of one kind cannot be listed, the quota's other
// amounts are counted, and the quota is not looked at until they are. A kind that no
// quota names any more is not watched.
func TestKindThatIsNotListed(t *testing.T) {
	s := levelwiretest.Start(t)
	cl := s.Client(client.Options{})
	listed := make(chan struct{})
	c := run(t, s, time.Hour, func(next http.RoundTripper) http.RoundTripper {
		return transportFunc(func(q *http.Request) (*http.Response, error) {
			if strings.HasSuffix(q.URL.Path, "/configmaps") {
				select {
				case <-listed:
				case <-q.Context().Done():
					return nil, q.Context().Err()
				}
			}
			return next.RoundTrip(q)
		})
	})
	for i := range 2 {
		if err := createSecret(t.Context(), cl, fmt.Sprintf("s-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	createQuota(t, cl, amounts("count/secrets", "10", "count/configmaps", "10", "pods", "10"))
	await(t, cl, amounts("count/secrets", "2", "pods", "0"))
	close(listed)
	// kube-root-ca.crt is the only ConfigMap.
	await(t, cl, amounts("count/secrets", "2", "pods", "0", "count/configmaps", "1"))
	if kinds := c.kinds.list(); len(kinds) != 2 {
		t.Errorf("%v are watched", kinds)
	}

	quotas := client.For[*corev1.ResourceQuota](cl).Namespace("default")
	q, err := quotas.Get(t.Context(), "q", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q.Spec.Hard = amounts("pods", "10")
	if _, err := quotas.Update(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, cl, amounts("pods", "0"))
	if kinds := c.kinds.list(); len(kinds) != 0 {
		t.Errorf("%v are watched", kinds)
	}

	// What happened meanwhile is counted when a quota names the kind again.
	if err := createSecret(t.Context(), cl, "s-3"); err != nil {
		t.Fatal(err)
	}
	if q, err = quotas.Get(t.Context(), "q", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	q.Spec.Hard = amounts("pods", "10", "count/secrets", "10")
	if _, err := quotas.Update(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, cl, amounts("pods", "0", "count/secrets", "3"))
}
