package watchcache

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// FuzzSelection holds compiled selections against apimachinery's selectors.
func FuzzSelection(f *testing.F) {
	f.Add("app=web", "spec.nodeName=n1", "app", "web", "n1")
	f.Add("app in (web,db),tier>3,!x", "metadata.name=a,status.phase!=Running", "tier", "5", "")
	f.Add("app notin (a,b),app!=c", "metadata.namespace=one", "app", "", "n2")
	f.Add("n<10", "metadata.namespace!=one,metadata.name!=b", "n", "-4", "")
	f.Add("n>+3", "metadata.name=a,metadata.name=b", "n", "0x5", "")
	f.Fuzz(func(t *testing.T, label, field, key, value, node string) {
		ls, err := labels.Parse(label)
		if err != nil {
			return
		}
		fs, err := fields.ParseSelector(field)
		if err != nil {
			return
		}
		s, err := NewSelection(podResource(), "", "", ls, fs)
		if err != nil {
			return // a field that cannot be selected
		}
		o := &Object{Key: "one/a", Attributes: resource.Attributes{
			Namespace: "one", Name: "a", Labels: resource.Labels{{Key: key, Value: value}}, Fields: make([]string, 2),
		}}
		o.Attributes.Fields[fieldNode], o.Attributes.Fields[fieldPhase] = node, "Running"
		want := ls.Matches(labels.Set{key: value}) && fs.Matches(fields.Set{
			"metadata.namespace": "one", "metadata.name": "a", "spec.nodeName": node, "status.phase": "Running"})
		if got := s.Matches(o); got != want {
			t.Fatalf("%q and %q of %s=%s on %s: %v, want %v", label, field, key, value, node, got, want)
		}
		if want && s.Everything() != (ls.Empty() && fs.Empty()) {
			t.Fatalf("%q and %q are everything: %v", label, field, s.Everything())
		}
	})
}
