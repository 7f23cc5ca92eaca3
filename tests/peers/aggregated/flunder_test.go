package aggregated

import (
	"context"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

var gv = schema.GroupVersion{Group: "wardle.example.com", Version: "v1alpha1"}

// Flunder is the kind of the server.
type Flunder struct {
	metav1.TypeMeta   `json:""`
	metav1.ObjectMeta `json:"metadata"`

	Reference string `json:"reference"`
}

// DeepCopyObject implements runtime.Object.
func (f *Flunder) DeepCopyObject() runtime.Object {
	out := &Flunder{TypeMeta: f.TypeMeta, Reference: f.Reference}
	f.DeepCopyInto(&out.ObjectMeta)
	return out
}

// FlunderList is a list of them.
type FlunderList struct {
	metav1.TypeMeta `json:""`
	metav1.ListMeta `json:"metadata"`

	Items []Flunder `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *FlunderList) DeepCopyObject() runtime.Object {
	out := &FlunderList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Flunder))
	}
	return out
}

// flunders stores them in memory.
type flunders struct {
	rest.TableConvertor

	mu       sync.Mutex
	objects  map[string]*Flunder
	revision int
	events   *watch.Broadcaster
	users    []string // that created one
}

func newFlunders() *flunders {
	resource := schema.GroupResource{Group: gv.Group, Resource: "flunders"}
	return &flunders{
		TableConvertor: rest.NewDefaultTableConvertor(resource), objects: map[string]*Flunder{}, events: watch.NewBroadcaster(100, watch.WaitIfChannelFull),
	}
}

func (s *flunders) New() runtime.Object     { return &Flunder{} }
func (s *flunders) NewList() runtime.Object { return &FlunderList{} }
func (s *flunders) Destroy()                {}
func (s *flunders) NamespaceScoped() bool   { return true }
func (s *flunders) GetSingularName() string { return "flunder" }
func (s *flunders) ShortNames() []string    { return []string{"fl"} }

func (s *flunders) key(ctx context.Context, name string) string {
	return request.NamespaceValue(ctx) + "/" + name
}

func (s *flunders) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	if err := validate(ctx, obj); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := obj.DeepCopyObject().(*Flunder)
	rest.FillObjectMetaSystemFields(f)
	f.Namespace = request.NamespaceValue(ctx)
	user, _ := request.UserFrom(ctx)
	s.users = append(s.users, user.GetName())
	s.revision++
	f.ResourceVersion = strconv.Itoa(s.revision)
	s.objects[s.key(ctx, f.Name)] = f
	return f.DeepCopyObject(), s.events.Action(watch.Added, f.DeepCopyObject())
}

func (s *flunders) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.objects[s.key(ctx, name)]; f != nil {
		return f.DeepCopyObject(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: gv.Group, Resource: "flunders"}, name)
}

func (s *flunders) List(ctx context.Context, _ *metainternalversion.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &FlunderList{Items: []Flunder{}}
	list.ResourceVersion = strconv.Itoa(s.revision)
	for _, f := range s.objects {
		if in := request.NamespaceValue(ctx); in == "" || in == f.Namespace {
			list.Items = append(list.Items, *f.DeepCopyObject().(*Flunder))
		}
	}
	return list, nil
}

func (s *flunders) Watch(context.Context, *metainternalversion.ListOptions) (watch.Interface, error) {
	return s.events.Watch()
}

func (s *flunders) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, _ *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, err := s.Get(ctx, name, nil)
	if err != nil {
		return nil, false, err
	}
	if err := validate(ctx, obj); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, s.key(ctx, name))
	return obj, true, s.events.Action(watch.Deleted, obj)
}
