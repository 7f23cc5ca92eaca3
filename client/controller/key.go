package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/internal/contain"
)

// Key names the object to reconcile.
type Key = types.NamespacedName

// KeyOf returns the key of an object.
func KeyOf(obj metav1.Object) Key {
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// ClusterKey names an object of one of several clusters. It is the key of
// controllers that watch the informers of several clients; see [InCluster].
type ClusterKey struct {
	// Cluster is the name that the program gives to the cluster.
	Cluster         string
	Namespace, Name string
}

// Key returns the key within the cluster.
func (k ClusterKey) Key() Key { return Key{Namespace: k.Namespace, Name: k.Name} }

// String returns cluster/namespace/name.
func (k ClusterKey) String() string { return k.Cluster + "/" + k.Key().String() }

// keyText is how logs and spans show a key. One whose String panics is shown without it, and with
// the reason: a key that cannot be named is reconciled all the same.
func keyText(key any) (text string) {
	s, ok := key.(fmt.Stringer)
	if !ok {
		return fmt.Sprint(key) // which contains panics itself
	}
	if panicked := contain.Call("its String", func() { text = s.String() }); panicked != nil {
		return fmt.Sprintf("%#v (%v)", key, panicked)
	}
	return text
}
