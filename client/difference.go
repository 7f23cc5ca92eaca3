package client

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/internal/difference"
)

// Why there is no difference: a list has to do. Neither says anything about
// the collection.
var (
	// ErrNoDifference means that the server does not offer them, as only
	// Levelwire's do.
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
// opts.ResourceVersion is the version at which held was complete, and the result is
// not older; limits and continue tokens are not possible. Difference does not
// change the objects in held.
//
// Errors beside those of a list are ErrNoDifference and ErrListInstead. A Client
// that has found a server without differences remembers it for its lifetime, and
// does not ask again.
func (r Resource[T]) Difference(ctx context.Context, held []T, opts metav1.ListOptions) (*Difference[T], error) {
	if r.client.noDifference.Load() {
		return nil, ErrNoDifference
	}
	opts.Watch = false
	c, err := newClaim(difference.NewSeed(), held, opts.ResourceVersion)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListInstead, err)
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
		return nil, r.client.withoutDifference(err)
	}
	defer ans.close()
	media, params, err := mime.ParseMediaType(ans.resp.Header.Get("Content-Type"))
	if err != nil || media != difference.MediaType {
		r.client.noDifference.Store(true) // something that answers everything
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

// withoutDifference makes a refusal ErrNoDifference or ErrListInstead. It leaves
// the refusals of an overloaded server, and of one that has not authenticated the
// client, as they are: a list would fare no better.
func (c *Client) withoutDifference(err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch code := status.Status().Code; {
	case status.Status().Reason == difference.ReasonListInstead:
		return fmt.Errorf("%w: %w", ErrListInstead, err)
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code == http.StatusNotImplemented:
		c.noDifference.Store(true)
		return fmt.Errorf("%w: %w", ErrNoDifference, err)
	case code == http.StatusForbidden: // Kubernetes forbids paths that it does not know, too
		return fmt.Errorf("%w: %w", ErrNoDifference, err)
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests,
		code >= http.StatusInternalServerError:
		return err
	}
	return fmt.Errorf("%w: %w", ErrListInstead, err)
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
