package informer_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// A transform that takes the metadata away, so that there is no name to give back, ends no
// informer: in lists, in events, and in lists after them.
func TestTransformThatRuinsTheMetadataEndsNoInformer(t *testing.T) {
	ruin := func(u *unstructured.Unstructured) { u.Object["metadata"] = "ruined" }
	for name, test := range map[string]widgetTest{
		"of the informer": {inform: func(f *informer.Factory, opts informer.ListOptions) widgetInformer {
			i := informer.Dynamic(f, widgetsResource, opts)
			if err := i.SetTransform(func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) { ruin(u); return u, nil }); err != nil {
				t.Error(err)
			}
			return looked(i)
		}},
		"of the factory": {opts: informer.Options{Transform: func(obj client.Object) error { ruin(obj.(*unstructured.Unstructured)); return nil }}},
		"that panics":    {opts: informer.Options{Transform: func(obj client.Object) error { ruin(obj.(*unstructured.Unstructured)); panic("ruined") }}},
		"in compressed objects": {opts: informer.Options{CompressObjects: true,
			Transform: func(obj client.Object) error { ruin(obj.(*unstructured.Unstructured)); return nil }}},
		"of pages": {opts: informer.Options{Reflector: reflector.Options{PagedList: true},
			Transform: func(obj client.Object) error { ruin(obj.(*unstructured.Unstructured)); return nil }}},
	} {
		t.Run(name, func(t *testing.T) {
			test.prepare = func(s *widgetServer) { s.set(namespacedWidgets, "n/a") }
			test.run(t, func(t *testing.T, s *widgetServer, i widgetInformer) {
				i.has(t, "listed", "", "n/a")
				s.set(namespacedWidgets, "n/a", "n/b")
				pass(time.Minute)
				i.has(t, "watched", "", "n/a", "n/b")
				s.set("")
				pass(time.Hour)
				s.set(namespacedWidgets, "n/c")
				pass(time.Minute)
				i.has(t, "listed again", "", "n/c")
				if got := i.Stats().Untransformed; got != 4 {
					t.Errorf("%d counted", got)
				}
			})
		})
	}
}
