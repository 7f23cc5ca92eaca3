// Package define turns one entry per kind into a resource.Resource: Kind is
// the entry, Rules are the kind's defaults and validation in terms of its own Go
// type. Every package below builtin uses it.
package define

import (
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Kind is an entry of the table. What is left out takes the usual value: the
// kind is namespaced, keeps a generation, may be overwritten by a PUT without
// resourceVersion, and lives under its plural.
type Kind struct {
	Name       string // "Pod"
	Plural     string
	ShortNames []string
	Categories []string
	Cluster    bool // not namespaced

	// Path is the place in the store below /registry/, if it is not Plural.
	Path string
	TTL  time.Duration
	// Upgrade is that of the Resource.
	Upgrade func(value []byte, version string) (resource.Object, error)
	// StoredIn is that of the Resource.
	StoredIn []string

	Fields []resource.Field
	// FieldLabels is that of the Resource.
	FieldLabels resource.FieldLabels
	Status      bool
	// StatusKeeps is the metadata that a write to the status leaves as it is.
	StatusKeeps resource.Metadata
	// Unowned are fields, as in "status.conditions", that writers do not own, by subresource.
	Unowned map[string][]string
	Scale   *resource.Scale

	// NameRule says what is wrong with a name; nil: it must be a DNS
	// subdomain.
	NameRule apivalidation.ValidateNameFunc
	// NameRuleForNew: both rules are for new objects only. Kubernetes checks the names of
	// an object that is replaced, too, but not of all kinds.
	NameRuleForNew bool
	// MetadataIfValid and NamesBeforeFinalizers are those of the Strategy.
	MetadataIfValid       bool
	NamesBeforeFinalizers bool

	NoGeneration bool
	// NoFirstGeneration is that of the Strategy.
	NoFirstGeneration bool
	ConditionalOnly   bool // a PUT must name a resourceVersion
	UpsertOnUpdate    bool
	MarkedByTime      bool
	// PreconditionFailed is that of the Strategy.
	PreconditionFailed string
	ReturnDeleted      bool
	NoDependents       bool // that of the Strategy
	OrphanByDefault    bool
	OrphanWarning      string // that of the Strategy
	// CreateWithStatus: a POST may bring a status.
	CreateWithStatus bool
	// NamesUnnamed is that of the Strategy.
	NamesUnnamed bool
	// WholeGenerateName is that of the Strategy.
	WholeGenerateName bool
	// Verbs lists what may be done; nil: everything.
	Verbs []string
	// Deprecation is that of the Resource.
	Deprecation string
}

// object is a pointer to a struct that is an API object.
type object[T any] interface {
	*T
	resource.Object
}

// list is a pointer to a struct that is an API list.
type list[L any] interface {
	*L
	runtime.Object
}

// Resource makes the resource of one kind: T is its Go type, L that of its
// list.
func Resource[T, L any, PT object[T], PL list[L]](gv schema.GroupVersion, k Kind, s Rules[PT]) *resource.Resource {
	path := k.Path
	if path == "" {
		path = k.Plural
	}
	return &resource.Resource{
		Group: gv.Group, Version: gv.Version,
		Kind: k.Name, ListKind: k.Name + "List",
		Plural: k.Plural, Singular: strings.ToLower(k.Name),
		ShortNames: k.ShortNames, Categories: k.Categories,
		Namespaced:  !k.Cluster,
		StorePrefix: "/registry/" + path + "/",
		TTL:         k.TTL,
		Upgrade:     k.Upgrade,
		StoredIn:    k.StoredIn,
		New:         func() resource.Object { return PT(new(T)) },
		NewList:     func() runtime.Object { return PL(new(L)) },
		Fields:      k.Fields,
		FieldLabels: k.FieldLabels,
		Status:      k.Status,
		Scale:       k.Scale,
		Verbs:       k.Verbs,
		Deprecation: k.Deprecation,
		Strategy:    strategy(k, s),
	}
}

// InAll is the categories of a kind that `kubectl get all` lists.
var InAll = []string{"all"}
