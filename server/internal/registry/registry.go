package registry

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/levelwire/levelwire/server/internal/registry/contention"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Resources is the table of the served resources. It may change at any time; its
// methods are called concurrently.
type Resources interface {
	// Lookup returns the resource with that name in URLs, or nil.
	Lookup(group, version, plural string) *resource.Resource
	// ByKind returns the resource of a kind, or nil.
	ByKind(gvk schema.GroupVersionKind) *resource.Resource
	// All returns every resource in a stable order.
	All() []*resource.Resource
}

// Config are the parts of a Set. Fields with a default may be left zero.
type Config struct {
	// Store holds the objects. Required.
	Store storage.Store
	// Resources is what is served. Required.
	Resources Resources
	// Cache returns the cache of a stored resource, or nil if it has none
	// (yet). Default: there are none, and every read asks the store.
	Cache func(stored *resource.Resource) *watchcache.Cache

	// Admission are the mutating hooks that every write passes, in this order, after
	// the object was defaulted and before it is validated.
	Admission []Admission
	// Validation are the validating hooks that every write passes, in this order,
	// after the object was validated.
	Validation []Admission
	// StatusChecks are asked for what validation of each status that is written finds, in this order, before the
	// strategy of its kind is.
	StatusChecks []Check
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NameSuffix makes the random end of a generated name, five characters.
	// Default: letters and digits that spell no words.
	NameSuffix func() string
	// NewUID makes an object's uid. Default: a random UUID.
	NewUID func() types.UID
	// DeleteWorkers bounds how many objects of a collection are deleted at
	// the same time. Default 16.
	DeleteWorkers int
}

const generatedSuffixLength = 5

func (c *Config) setDefaults() {
	if c.Cache == nil {
		c.Cache = func(*resource.Resource) *watchcache.Cache { return nil }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NameSuffix == nil {
		c.NameSuffix = func() string { return rand.String(generatedSuffixLength) }
	}
	if c.NewUID == nil {
		c.NewUID = func() types.UID { return types.UID(uuid.NewString()) }
	}
	if c.DeleteWorkers <= 0 {
		c.DeleteWorkers = 16
	}
}

// Set has the Registry of each resource over one store. It is safe for
// concurrent use.
type Set struct {
	config Config
	marks  sync.Map // StorePrefix of a kind -> *ownwrites.Marks
	// contention is what lets writes of one object take turns once they overtake each other.
	contention contention.Objects
	// storeHooks are by the StorePrefix of their kinds.
	storeHooks map[string]StoreHook
}

// NewSet returns a Set. It does no I/O.
func NewSet(config Config) (*Set, error) {
	if config.Store == nil {
		return nil, errors.New("registry: Config.Store is missing: give it the store that holds the objects")
	}
	if config.Resources == nil {
		return nil, errors.New("registry: Config.Resources is missing: give it the table of served resources")
	}
	config.setDefaults()
	return &Set{config: config}, nil
}

// Admit appends to the hooks of Config.Admission. It is for hooks that need
// the Set itself, and must be called before the first write.
func (s *Set) Admit(hooks ...Admission) {
	s.config.Admission = append(s.config.Admission, hooks...)
}

// Validate appends to the hooks of Config.Validation, as Admit does to those of
// Config.Admission.
func (s *Set) Validate(hooks ...Admission) {
	s.config.Validation = append(s.config.Validation, hooks...)
}

// CheckStatus appends to Config.StatusChecks, as Admit does to Config.Admission.
func (s *Set) CheckStatus(checks ...Check) {
	s.config.StatusChecks = append(s.config.StatusChecks, checks...)
}

// StoreHook is called just before the store is asked to create or replace an object, by the
// goroutine of the write. stored is the stored form of the object, which never changes. What the hook returns,
// unless that is nil, is called when the store has answered.
//
// So what follows the events of a kind can have the writer do the work that an event makes.
type StoreHook func(ctx context.Context, namespace, name string, stored []byte) (answered func(Outcome))

// BeforeStore sets the hook of a kind, in place of one that was set before. It must not be called beside writes.
func (s *Set) BeforeStore(stored *resource.Resource, hook StoreHook) {
	if s.storeHooks == nil {
		s.storeHooks = map[string]StoreHook{}
	}
	s.storeHooks[stored.StorePrefix] = hook
}

// Resources returns the table of what is served.
func (s *Set) Resources() Resources { return s.config.Resources }

// Store returns the store that holds the objects.
func (s *Set) Store() storage.Store { return s.config.Store }

// For returns the verbs on one resource. It is cheap.
func (s *Set) For(res *resource.Resource) Registry {
	return Registry{set: s, res: res, stored: res.Stored()}
}

// Lookup is For by name; ok is false if the resource is not served.
func (s *Set) Lookup(group, version, plural string) (r Registry, ok bool) {
	res := s.config.Resources.Lookup(group, version, plural)
	if res == nil {
		return Registry{}, false
	}
	return s.For(res), true
}

// Now returns the time of a write, in whole seconds.
func (s *Set) Now() metav1.Time { return metav1.NewTime(s.config.Now().UTC().Truncate(time.Second)) }

// Registry is the verbs on the objects of one endpoint. It is a small value,
// safe for concurrent use. Every error is a *apierrors.StatusError.
type Registry struct {
	set    *Set
	res    *resource.Resource // as the endpoint shows it
	stored *resource.Resource // as it is stored and cached
}

// Set returns the registries of all resources over the same store.
func (r Registry) Set() *Set { return r.set }

// Resource returns the resource whose objects the registry writes.
func (r Registry) Resource() *resource.Resource { return r.res }

// WriteOptions apply to every write.
type WriteOptions struct {
	// DryRun takes the write through all stages but commit.
	DryRun bool
	// FieldManager is the owner, in metadata.managedFields, of the fields that the
	// write changes. Default "unknown".
	FieldManager string
	// AuthorizeCreate is asked before an update or a patch creates an object that
	// does not exist, and refuses that with its error; nil: allowed. It may be called
	// more than once, and must not block for longer than ctx lasts.
	AuthorizeCreate func(ctx context.Context) error
	// Stated are options as the client has stated them, for admission.
	Stated StatedOptions
	// Admitted is Request.Admitted.
	Admitted bool
}

// StatedOptions are the options of a write that say nothing about what is written.
type StatedOptions struct {
	// FieldManager is "" if the client did not name itself.
	FieldManager    string
	FieldValidation string
}
