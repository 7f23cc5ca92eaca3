package soak

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/tests/workload"
)

var servingInterval = flag.Duration("soak.certificates", time.Minute,
	"how often to wait until a server that is left alone uses a rotated certificate")

const (
	// operation bounds one request: the server may be gone.
	operation = 5 * time.Second
	// recovery bounds how long after a fault of the storage a write may be refused. A
	// full disk is noticed within a second, a full quota every ten, after a compaction.
	recovery = time.Minute
	// largeBytes and largeObjects fill the quota.
	largeBytes   = 700 << 10
	largeObjects = 4 * quota / largeBytes
	// maxJump is by how much wall clocks differ from the system's.
	maxJump = 48 * time.Hour
)

// wait waits before the next attempt.
func wait(ctx context.Context) { workload.Wait(ctx, 50*time.Millisecond) }

// try makes one write, and takes it back.
func (c *chaos) try(t *testing.T) error {
	ctx, cancel := context.WithTimeout(t.Context(), operation) //passes: the server may be gone, and is asked again
	defer cancel()
	made, err := c.objects.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return c.objects.Delete(ctx, made.Name, metav1.DeleteOptions{})
}

// recovers waits for a write.
func (c *chaos) recovers(t *testing.T, kind string) {
	t.Helper()
	begun := time.Now()
	for err := c.try(t); err != nil; err = c.try(t) {
		if time.Since(begun) > recovery {
			t.Errorf("%s: no write %v after it: %v", kind, time.Since(begun), err)
			return
		}
		wait(t.Context())
	}
	c.recoveries[kind] = max(c.recoveries[kind], time.Since(begun).Round(10*time.Millisecond))
}

func isFull(err error) bool {
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // As the server sent it.
	return ok && status.Status().Code == http.StatusInsufficientStorage
}

// refusesWrites waits until writes get 507 with a sentence that has hint in it, and
// checks that reads go on and /readyz says why it fails.
//
// keep is called before each attempt: it keeps the cause.
func (c *chaos) refusesWrites(t *testing.T, kind, hint string, keep func()) {
	t.Helper()
	err := c.try(t)
	for begun := time.Now(); !isFull(err) && time.Since(begun) < recovery; err = c.try(t) {
		wait(t.Context())
		keep()
	}
	if !isFull(err) || !strings.Contains(err.Error(), hint) {
		t.Errorf("%s: a write got %v", kind, err)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), workload.Timeout)
	defer cancel()
	if _, err := c.objects.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		t.Errorf("%s: a list got %v", kind, err)
	}
	var said string
	begun := time.Now()
	for !strings.Contains(said, "[-]storage-writes failed") && time.Since(begun) < recovery {
		wait(ctx)
		keep()
		said = c.get(ctx, "/readyz?verbose")
	}
	if time.Since(begun) > recovery {
		t.Errorf("%s: /readyz says %s", kind, said)
	}
}

func (c *chaos) get(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, operation) //passes: the server may be gone, and is asked again
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host.url+path, nil)
	if err != nil {
		return err.Error()
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return fmt.Sprint(string(body), err)
}

// fillDisk leaves so many bytes of the disk.
func (c *chaos) fillDisk(t *testing.T, left int64) {
	t.Helper()
	kind := fmt.Sprintf("disk full but for %d MiB", left>>20)
	fill(t, c.host.inside(""), left)
	// etcd removes segments of its log, or makes its database smaller, now and then.
	c.refusesWrites(t, kind, "the disk of ", func() { fill(t, c.host.inside(""), left) })
	workload.Wait(t.Context(), c.upTo(3*time.Second))
	empty(t, c.host.inside(""))
	c.recovers(t, kind)
}

// exceedQuota fills the database, and empties it.
func (c *chaos) exceedQuota(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), workload.Timeout)
	defer cancel()
	content := map[string]string{"content": strings.Repeat("x", largeBytes)}
	var err error
	for n := 0; n < largeObjects && !isFull(err); n++ {
		large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "large-", Labels: map[string]string{"large": "yes"}}, Data: content}
		_, err = c.objects.Create(ctx, large, metav1.CreateOptions{})
	}
	c.refusesWrites(t, "quota", "--quota-backend-bytes", func() {})
	// The database may be defragmented meanwhile, for longer than a write waits.
	err = c.objects.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "large=yes"})
	for ; err != nil && !isFull(err) && ctx.Err() == nil; wait(ctx) {
		err = c.objects.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "large=yes"})
	}
	if err != nil {
		t.Errorf("quota: deletions got %v", err)
	}
	c.recovers(t, "quota")
}

// failDisk makes the disk of the server refuse every write. The server ends, and starts
// again on what the disk has.
func (c *chaos) failDisk(t *testing.T) {
	t.Helper()
	c.host.command(t, failsDisk)
	said := c.host.awaitFailure(t)
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, c.host.dir) {
		t.Errorf("the disk failed, and the server said %q", said)
	}
	workload.Wait(t.Context(), c.upTo(time.Second))
	c.host.start(t)
}

// slowDisk has the disk take writes now and then only.
func (c *chaos) slowDisk(t *testing.T) {
	t.Helper()
	for range 1 + c.random.IntN(20) {
		stall(t, c.host.inside(""), c.upTo(500*time.Millisecond))
		workload.Wait(t.Context(), c.upTo(50*time.Millisecond))
	}
	if c.random.IntN(4) == 0 { // for longer than clients wait
		stall(t, c.host.inside(""), operation+c.upTo(operation))
	}
	c.recovers(t, "slow disk")
}

// jump sets the clock of everything here, for until it jumps again; that of the server
// first, for some seconds if apart is true. Certificates of clients, which are valid for
// seconds, are not meanwhile.
func (c *chaos) jump(t *testing.T, apart bool) {
	t.Helper()
	by := c.upTo(2*maxJump) - maxJump
	c.host.setClock(t, by)
	if apart {
		workload.Wait(t.Context(), c.upTo(5*time.Second))
	}
	shiftWall(by)
	c.recovers(t, "clock")
}

// awaitServingCertificate waits until the server that runs uses another certificate.
func (c *chaos) awaitServingCertificate(t *testing.T) {
	t.Helper()
	serial := func() string {
		ctx, cancel := context.WithTimeout(t.Context(), workload.Timeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host.url+"/livez", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.http.Do(request)
		if err != nil {
			t.Errorf("with a rotated certificate: %v", err)
			return ""
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		return answer.TLS.PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	workload.Await(t, func() string { return "another certificate of the server" }, func() bool {
		workload.Wait(t.Context(), time.Second)
		return t.Failed() || serial() != before
	})
	c.rotated = time.Now()
	c.counts["rotated certificate of the server"]++
}
