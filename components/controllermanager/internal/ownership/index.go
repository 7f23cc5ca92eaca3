package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/informer"
)

// byOwner is the index of objects by their controller's uid. Objects without
// a controller are under their namespace, marked so that it is no uid.
const byOwner = "controller"

func orphansOf(namespace string) string { return "orphans/" + namespace }

// Index finds objects by owner, so that looking after an owner costs what it
// owns and not what its namespace holds. It is safe for concurrent use.
type Index[T client.Object] struct {
	// Informer is what is indexed.
	Informer *informer.SharedInformer[T]
	read     reads[T] // the Informer's
}

// reads are those of an informer.Lister.
type reads[T any] interface {
	ByIndex(name, value string) ([]T, error)
	ByIndexAny(name string, values ...string) ([]T, error)
}

// NewIndex adds the index to an informer that has not started. An informer
// can have it once: share the Index.
func NewIndex[T client.Object](inf *informer.SharedInformer[T]) (*Index[T], error) {
	err := inf.AddIndexers(cache.Indexers[T]{byOwner: ownerOf[T]})
	return &Index[T]{inf, inf.Lister()}, err
}

func ownerOf[T client.Object](obj T) ([]string, error) {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return []string{string(ref.UID)}, nil
	}
	return []string{orphansOf(obj.GetNamespace())}, nil
}

// Owned returns the objects whose controller has the uid. The slice is the
// caller's; the objects are shared and must not be changed.
func (x *Index[T]) Owned(uid types.UID) ([]T, error) {
	return x.read.ByIndex(byOwner, string(uid))
}

// Candidates returns the objects that owner has or could adopt, as they are at one
// moment: one that is adopted meanwhile is among them once.
func (x *Index[T]) Candidates(owner metav1.Object) ([]T, error) {
	return x.read.ByIndexAny(byOwner, string(owner.GetUID()), orphansOf(owner.GetNamespace()))
}
