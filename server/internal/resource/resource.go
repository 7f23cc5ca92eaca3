package resource

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/server/internal/resource/jsonproto"
)

// Object is a decoded object of any kind. It exists only while a request
// needs it: the stored and cached form is bytes.
type Object interface {
	runtime.Object
	metav1.Object
}

// Resource describes one endpoint of the API: a resource of one group and
// version. It is immutable once it is served, but for Select.
type Resource struct {
	Group, Version string
	Kind           string // "Pod"
	ListKind       string // "PodList"
	Plural         string // "pods"; the name in URLs
	Singular       string // "pod"
	ShortNames     []string
	Categories     []string
	Namespaced     bool

	// Verbs lists what may be done; nil means everything Kubernetes offers
	// (create delete deletecollection get list patch update watch). Kinds
	// that are only posted (reviews) are not Resources.
	Verbs []string

	// StorePrefix is where objects live, with a slash at its end:
	// "/registry/pods/". Kubernetes' own layout, exceptions included
	// ("/registry/services/specs/", "/registry/minions/").
	StorePrefix string

	// TTL after which the store forgets an object; zero for ever.
	TTL time.Duration

	// Storage is the resource whose objects this one shows in another version
	// (autoscaling/v1 over autoscaling/v2, events.k8s.io over core events).
	// nil: this resource is itself what is stored and cached.
	Storage *Resource
	// FromStorage and ToStorage convert between the two versions. FromStorage
	// may take its argument apart and even return it; ToStorage never modifies
	// its own. A conversion that calls a webhook ends, with an error, when ctx
	// ends. nil if Storage is nil.
	FromStorage func(ctx context.Context, stored Object) (Object, error)
	ToStorage   func(ctx context.Context, obj Object) (Object, error)
	// StorageCompletes: ToStorage adds to an object what clients then read, so that a write
	// is answered with what FromStorage makes of the stored object.
	StorageCompletes bool
	// FromStorageBatch is FromStorage for many objects at once, in their order,
	// where one call for each would cost much more: a conversion webhook. nil
	// elsewhere.
	FromStorageBatch func(ctx context.Context, stored []Object) ([]Object, error)
	// AsStored reports whether a cached object of Storage, last written at the
	// given revision, is what this resource shows as it is, so that its bytes
	// may be sent. nil: never.
	AsStored func(json []byte, revision int64) bool

	// Upgrade decodes a stored value of another version of the kind, as other
	// servers write it (CustomResourceDefinitions in v1beta1). nil: there is none.
	Upgrade func(value []byte, version string) (Object, error)
	// StoredIn are other versions of the kind in which other servers store it: a
	// kube-apiserver keeps to the version before for one release. Their fields must
	// have the names and numbers of this version's; one that this version lacks is
	// dropped.
	StoredIn []string

	// Mixed: the stored objects are of several versions of the kind, and each
	// says in its apiVersion of which (custom resources, whose storage version
	// may change). A mixed resource is what others are shown over; it is not
	// served, and so not in a Table, itself.
	Mixed bool
	// Generation grows when the definition of a custom resource changes what
	// its objects look like; see watchcache.Object.FormAt. 0 for built-in kinds.
	Generation uint64

	// New returns an empty object; NewList an empty list.
	New     func() Object
	NewList func() runtime.Object

	// Fields are what a fieldSelector may name beside metadata.name and, if
	// namespaced, metadata.namespace.
	Fields []Field
	// FieldLabels are how field selectors of this kind deviate from Fields.
	FieldLabels FieldLabels

	// Columns and Row make the table that kubectl get prints. Row must give
	// one cell per column.
	Columns []metav1.TableColumnDefinition
	Row     func(obj Object) []any

	// Status: the kind has a status subresource. Writes to the main endpoint
	// then leave the status alone, and writes to it change nothing else.
	Status bool
	// Scale is nil if there is no scale subresource.
	Scale *Scale

	Strategy Strategy

	// OpenAPI returns the schema that is published for the kind, in the form
	// of OpenAPI v3 and without references to other schemas. nil for built-in
	// kinds, whose schema is read off their Go type. The result must not be modified.
	OpenAPI func() *spec.Schema
	// SchemaJSON returns the same schema as the definition has it, in JSON, or nil if
	// there is none. It must not be modified.
	SchemaJSON func() []byte
	// TypeConverter returns what field ownership (KEP-555) needs to know of the
	// kind's lists and maps. nil for built-in kinds, which share one.
	TypeConverter func() (managedfields.TypeConverter, error)
	// Prune removes from a decoded body what the kind's schema does not know
	// and returns an error for each removed field, naming its path. It fails
	// if the metadata is not what metadata has to be. nil for built-in kinds,
	// whose Go type knows no other fields. DecodeBody calls it.
	Prune func(obj Object) (unknown []error, err error)
	// Deprecation is the warning that every request for the resource is
	// answered with; empty if it is not deprecated.
	Deprecation string

	plan    atomic.Pointer[extraction]     // Fields compiled, on first use
	prefix  atomic.Pointer[[]byte]         // see Prefix, on first use
	message atomic.Pointer[jsonproto.Plan] // see AppendProtobuf, on first use
}

// Field is one selectable field: the value at one of the paths, the first
// that is present and not empty, or Default.
type Field struct {
	Name    string     // as in the selector: "spec.nodeName"
	Paths   [][]string // in the JSON form: {{"spec", "nodeName"}}
	Default string     // value of an absent field: "", or "false" for a boolean
	// Final says that a value other than Default stays for as long as the object
	// lives, so that one that has, say, a node has never been on another one.
	Final bool
	// Stored is, for a resource that is shown over another one, the name of
	// the field there; empty if it is the same. Paths and Default are then not used.
	Stored string
}

// FieldLabels are how field selectors of a kind deviate from its Fields.
type FieldLabels struct {
	// Aliases are other names of Fields, by which old clients know them.
	Aliases map[string]string
	// Empty are fields that may be named, but that no object has a value of.
	Empty []string
	// NoNamespace: a selector must not name metadata.namespace.
	NoNamespace bool
	// Unknown says that a field cannot be named; nil: the words of most kinds.
	Unknown func(name string) string
}

// Scale says where a kind keeps what autoscaling/v1 Scale shows.
type Scale struct {
	// Get reads replicas wanted, replicas observed, and the label selector in
	// string form. spec is nil if the object does not say how many it wants.
	Get func(obj Object) (spec *int32, status int32, selector string, err error)
	// Set changes the replicas wanted.
	Set func(obj Object, replicas int32) error
	// ReplicasPath is where the replicas wanted are, for their ownership:
	// {"spec", "size"}. Default {"spec", "replicas"}.
	ReplicasPath []string
}

// GroupVersion returns the API group and version.
func (r *Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// GroupVersionKind returns the kind with its group and version.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return r.GroupVersion().WithKind(r.Kind)
}

// GroupVersionResource returns the resource with its group and version.
func (r *Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(r.Plural)
}

// GroupResource returns the resource with its group, as errors name it.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// Stored returns the resource whose objects are in the store: Storage, or r
// itself.
func (r *Resource) Stored() *Resource {
	if r.Storage != nil {
		return r.Storage
	}
	return r
}

// Key returns the cache key of an object: "namespace/name", or "name" for a
// cluster-scoped kind. StorePrefix+Key is the store's key.
func (r *Resource) Key(namespace, name string) string {
	if !r.Namespaced {
		return name
	}
	return namespace + "/" + name
}

// StoredResources returns what has a cache: each stored resource once, those of
// custom resources, which are not served themselves, included.
func StoredResources(served []*Resource) []*Resource {
	var list []*Resource
	seen := map[*Resource]bool{}
	for _, res := range served {
		if stored := res.Stored(); !seen[stored] {
			seen[stored] = true
			list = append(list, stored)
		}
	}
	return list
}
