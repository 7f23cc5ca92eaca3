package read

import (
	"context"
	"fmt"
	"iter"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Difference is what a client lacks of a collection, or has too much, at one
// revision. The client has sent a digest of what it holds (docs/users/difference.md).
// Nothing is kept of the objects but one bit each: they are gone through again for
// each of the answer's parts.
type Difference struct {
	// Header is the beginning of the answer.
	Header difference.Header

	digest  *difference.Digest
	objects iter.Seq[*watchcache.Object] // the same, and in the same order, each time
	// marked has the bit of each object that is in a bucket that differs, by its
	// place in objects.
	marked []uint64
}

// Difference compares a digest with what a list with the same options would show.
// It fails with ListInstead if a list costs less.
func (r *Reader) Difference(ctx context.Context, scope Scope, opts *metav1.ListOptions, digest *difference.Digest) (*Difference, error) {
	sel, err := scope.parse(opts, validateList)
	if err != nil {
		return nil, err
	}
	if opts.Limit != 0 || opts.Continue != "" || opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return nil, status.BadRequest("a difference is of everything and of the present: limit, continue and resourceVersionMatch=Exact are not possible")
	}
	selection, err := scope.selection(sel)
	if err != nil {
		return nil, err
	}
	cache, err := r.filledCache(scope.Resource)
	if err != nil {
		return nil, err
	}
	source, err := r.sourceOfList(ctx, cache, opts, 0)
	if err != nil {
		return nil, err
	}
	if selection, err = r.visible(ctx, scope, cache, selection, source, opts); err != nil {
		return nil, err
	}
	d := &Difference{digest: digest, objects: source.snapshot.Select(selection, scope.keyPrefix())}
	if err := d.compare(ctx); err != nil {
		return nil, err
	}
	if d.listIsBetter() {
		return nil, ListInstead(fmt.Sprintf("%d of %d objects would have to be sent", d.Header.Sent, d.Header.Selected))
	}
	d.Header.Version = uint64(source.snapshot.Revision())
	return d, nil
}

// ListInstead is the 409 that makes a client list: a list says more, or the same for
// less. Its reason is difference.ReasonListInstead.
func ListInstead(why string) error {
	const conflict = 409
	return status.Failure(conflict, difference.ReasonListInstead, why+": list instead")
}

// checkEvery is after how many objects a comparison checks whether the request has
// ended.
const checkEvery = 4096

// bucketNumbers hold a bucket for each object of a collection while a comparison
// goes through it.
var bucketNumbers = sync.Pool{New: func() any { return new([]uint32) }}

// compare fills in the header but for its version.
func (d *Difference) compare(ctx context.Context) error {
	numbers := bucketNumbers.Get().(*[]uint32)
	defer bucketNumbers.Put(numbers)
	*numbers = (*numbers)[:0]
	if err := d.hash(ctx, numbers); err != nil {
		return err
	}
	// Hashes of what both sides hold have cancelled each other out.
	d.Header.Differing = difference.NewSet(d.digest.Bits)
	for i, rest := range d.digest.Buckets {
		if rest != 0 {
			d.Header.Differing.Add(uint32(i))
		}
	}
	d.marked = make([]uint64, (len(*numbers)+63)/64)
	for i, bucket := range *numbers {
		if d.Header.Differing.Has(bucket) {
			d.marked[i/64] |= 1 << (i % 64)
		}
	}
	for o := range d.differing() {
		if d.known(o) {
			d.Header.Unchanged++
		} else {
			d.Header.Sent++
		}
	}
	return ctx.Err()
}

// hash combines the hashes of the objects with the client's, and notes the bucket
// of each.
func (d *Difference) hash(ctx context.Context, numbers *[]uint32) error {
	hasher := difference.NewHasher(d.digest.Seed, d.digest.Bits)
	for o := range d.objects {
		bucket, hash := hasher.Keyed(o.Key, uint64(o.Revision))
		d.digest.Buckets[bucket] ^= hash
		d.Header.Checksum ^= hash
		*numbers = append(*numbers, bucket)
		if len(*numbers)%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	d.Header.Selected = uint64(len(*numbers))
	return nil
}

// known reports whether the client has an object, by the version that it says it
// has seen everything up to.
func (d *Difference) known(o *watchcache.Object) bool { return uint64(o.Revision) <= d.digest.Known }

// differing are the objects in buckets that differ.
func (d *Difference) differing() iter.Seq[*watchcache.Object] {
	return func(yield func(*watchcache.Object) bool) {
		i := 0
		for o := range d.objects {
			if d.marked[i/64]&(1<<(i%64)) != 0 && !yield(o) {
				return
			}
			i++
		}
	}
}

// Bits returns the size of the digest, which the encoding of the header depends on.
func (d *Difference) Bits() int { return d.digest.Bits }

// Unchanged yields the hashes of the objects in buckets that differ that the client
// has already: Header.Unchanged of them.
func (d *Difference) Unchanged() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		hasher := difference.NewHasher(d.digest.Seed, d.digest.Bits)
		for o := range d.differing() {
			if !d.known(o) {
				continue
			}
			if _, hash := hasher.Keyed(o.Key, uint64(o.Revision)); !yield(hash) {
				return
			}
		}
	}
}

// Sent yields the objects that the client lacks: Header.Sent of them. Each
// iteration yields the same objects in the same order.
func (d *Difference) Sent() iter.Seq[*watchcache.Object] {
	return func(yield func(*watchcache.Object) bool) {
		for o := range d.differing() {
			if !d.known(o) && !yield(o) {
				return
			}
		}
	}
}

// listIsBetter reports whether a list costs less: its blocks are shared, and a
// difference is encoded for one client. For less than a page of objects it does not
// matter.
func (d *Difference) listIsBetter() bool {
	const page = 500
	return d.Header.Selected > page && d.Header.Sent > d.Header.Selected/2
}
