package client

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/internal/difference"
)

// Why there is no difference: a list has to do. Neither says anything about
// the collection.
var (
	// ErrNoDifference means that the server does not offer them, as only
	// Levelwire's do, or not to this client.
	ErrNoDifference = errors.New("the server does not offer differences")
	// ErrListInstead means that the server, or what is held, is better served by
	// a list this time.
	ErrListInstead = errors.New("a list is wanted in place of a difference")
)

// Difference is what [Resource.Difference] found out. Kept and Received together
// are everything that was selected at ResourceVersion, Kept and Dropped everything
// that was held, in no order.
type Difference[T Object] struct {
	ResourceVersion string
	Kept            []T // of what was held, the same objects
	Received        []T
	Dropped         []T   // of what was held, what does not exist any more, or not in this version
	Bytes           int64 // sent and received, without compression
}

// Difference returns the server's state of what opts selects, for a caller that
// holds most of it already. The client sends a digest of the keys and versions in
// held, and the server sends only the objects that are not among them.
// opts.ResourceVersion is the version at which held was complete. The result is the
// most recent state: it is older only if the server went back. Limits and continue
// tokens are not possible. Difference does not change the objects in held.
//
// Errors beside those of a list are ErrNoDifference and ErrListInstead. A Client
// remembers for ten minutes of which resources, in which namespace, differences are
// refused to it, or not known, and does not ask again before.
func (r Resource[T]) Difference(ctx context.Context, held []T, opts metav1.ListOptions) (*Difference[T], error) {
	if r.client != nil && r.client.differenceRefusals.has(r.differenceScope()) {
		return nil, ErrNoDifference
	}
	c, err := newClaim(difference.NewSeed(), held, opts.ResourceVersion)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListInstead, err)
	}
	opts.Watch, opts.ResourceVersion = false, ""
	if opts.ResourceVersionMatch == metav1.ResourceVersionMatchNotOlderThan {
		opts.ResourceVersionMatch = ""
	}
	d, err := r.differenceFrom(ctx, c, &opts)
	if errors.Is(err, errNotHeld) && c.digest.Known != 0 {
		// The copy is not what it was taken for: nothing of it is certain.
		c.digest.Known = 0
		d, err = r.differenceFrom(ctx, c, &opts)
	}
	if errors.Is(err, errNotHeld) {
		err = fmt.Errorf("%w: %w", ErrListInstead, err)
	}
	return d, err
}

// errNotHeld is a hash from the server of something that is not held.
var errNotHeld = errors.New("the server takes something for held that is not")

func (r Resource[T]) differenceScope() differenceScope {
	return differenceScope{gvr: r.gvr, namespace: r.namespace}
}

// differenceFrom asks once.
func (r Resource[T]) differenceFrom(ctx context.Context, c *claim[T], opts *metav1.ListOptions) (*Difference[T], error) {
	req, err := r.request(call{verb: "difference", method: http.MethodPost, query: opts, list: true,
		raw: c.digest.Append(nil), contentType: difference.MediaType})
	if err != nil {
		return nil, err
	}
	req.path = difference.Path + req.path
	ans, err := r.client.do(ctx, req)
	if err != nil {
		return nil, r.client.differenceRefusals.note(r.differenceScope(), err)
	}
	defer ans.close()
	if err := r.confirmVisible(req.verb, ans.resp.Header, true); err != nil {
		return nil, ErrNoDifference // the list that follows says why
	}
	media, params, err := mime.ParseMediaType(ans.resp.Header.Get("Content-Type"))
	if err != nil || media != difference.MediaType {
		r.client.differenceRefusals.add(r.differenceScope()) // something that answers everything
		return nil, ErrNoDifference
	}
	src := codec.NewSource(ans, r.client.opts.MaxFrameBytes)
	d, err := readDifference(r.codec, codec.EncodingOf(params["items"]), src, c)
	c.bytes += int64(len(req.raw)) + ans.received.Load()
	if err != nil {
		return nil, fmt.Errorf("difference of %s: %w", r.gvr.Resource, contextError(ctx, err))
	}
	d.Bytes = c.bytes
	return d, nil
}

// claim is what a client says that it holds.
type claim[T Object] struct {
	held    []T
	buckets []uint32 // parallel to held
	hashes  []uint64
	digest  *difference.Digest
	hasher  *difference.Hasher
	bytes   int64 // that questions and answers took so far
}

func newClaim[T Object](seed difference.Seed, held []T, version string) (*claim[T], error) {
	c := &claim[T]{held: held, buckets: make([]uint32, len(held)), hashes: make([]uint64, len(held))}
	c.digest = difference.NewDigest(seed, len(held))
	c.hasher = difference.NewHasher(c.digest.Seed, c.digest.Bits)
	if version != "" {
		var err error
		if c.digest.Known, err = difference.Version(version); err != nil {
			return nil, err
		}
	}
	for i, obj := range held {
		bucket, hash, err := c.of(obj)
		if err != nil {
			return nil, err
		}
		c.buckets[i], c.hashes[i] = bucket, hash
		c.digest.Add(bucket, hash)
	}
	return c, nil
}

// of hashes an object.
func (c *claim[T]) of(obj T) (bucket uint32, hash uint64, err error) {
	version, err := difference.Version(obj.GetResourceVersion())
	if err != nil {
		return 0, 0, fmt.Errorf("object %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}
	bucket, hash = c.hasher.Named(obj.GetNamespace(), obj.GetName(), version)
	return bucket, hash, nil
}

func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }

// refusedFor is for how long a Client does not ask again where differences were refused:
// what refused them may have been a server that was replaced since, or a proxy.
const refusedFor = 10 * time.Minute

// maxDifferenceRefusals bounds the resources and namespaces for which it is remembered.
const maxDifferenceRefusals = 4096

// differenceRefusals is what a Client remembers of questions for a difference
// that servers have refused. It is safe for concurrent use.
type differenceRefusals struct {
	mu sync.Mutex
	at map[differenceScope]time.Time
}

// differenceScope is a resource, in one namespace or in all: what an identity may
// or may not ask about, and one server of several that an API consists of may know.
type differenceScope struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// has reports whether the server need not be asked now.
func (d *differenceRefusals) has(scope differenceScope) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, refused := d.at[scope]
	return refused && time.Since(at) < refusedFor
}

func (d *differenceRefusals) add(scope differenceScope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at == nil || len(d.at) >= maxDifferenceRefusals {
		d.at = map[differenceScope]time.Time{} // each is asked once more at worst
	}
	d.at[scope] = time.Now()
}

// note makes a refusal ErrNoDifference or ErrListInstead, and remembers it if the
// same question would be refused again soon. It leaves the refusals of an overloaded
// server, and of one that has not authenticated the client, as they are: a list
// would fare no better.
func (d *differenceRefusals) note(scope differenceScope, err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch code := status.Status().Code; {
	case status.Status().Reason == difference.ReasonListInstead:
		return fmt.Errorf("%w: %w", ErrListInstead, err)
	case code == http.StatusNotFound && !apierrors.IsNotFound(err):
		// A proxy's page says nothing about the server. Perhaps the proxy passes
		// other paths only.
	case code < http.StatusMultipleChoices: // so is the page of one that answers every path
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code == http.StatusNotImplemented:
	case code == http.StatusForbidden, code == http.StatusBadRequest: // Kubernetes forbids paths that it does not know, too
	case code == http.StatusUnsupportedMediaType, code == http.StatusNotAcceptable: // a proxy may pass JSON only
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests,
		code >= http.StatusInternalServerError:
		return err
	default:
		return fmt.Errorf("%w: %w", ErrListInstead, err)
	}
	d.add(scope)
	return fmt.Errorf("%w: %w", ErrNoDifference, err)
}
