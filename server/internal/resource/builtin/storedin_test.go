package builtin_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// storedBefore are the kinds that a kube-apiserver 1.37 stores in another version than the one that it
// prefers to show, so that the one before it can still read them.
var storedBefore = map[schema.GroupVersionKind]string{
	{Group: "certificates.k8s.io", Version: "v1", Kind: "ClusterTrustBundle"}:          "v1beta1",
	{Group: "certificates.k8s.io", Version: "v1", Kind: "PodCertificateRequest"}:       "v1beta1",
	{Group: "resource.k8s.io", Version: "v1", Kind: "DeviceTaintRule"}:                 "v1beta2",
	{Group: "storagemigration.k8s.io", Version: "v1", Kind: "StorageVersionMigration"}: "v1beta1",
}

// TestVersionsThatOthersStore: what a kube-apiserver has stored in an older version, in protobuf or JSON,
// is read as if it had the one that is served here.
func TestVersionsThatOthersStore(t *testing.T) {
	for gvk, version := range storedBefore {
		t.Run(gvk.Kind, func(t *testing.T) {
			r := builtin.Table().ByKind(gvk)
			stored, err := r.Encode(t.Context(), filled(t, r, 1))
			if err != nil {
				t.Fatal(err)
			}
			older := gvk.GroupKind().WithVersion(version)
			body := bytes.Replace(stored, []byte(gvk.GroupVersion().String()), []byte(older.GroupVersion().String()), 1)
			obj, err := scheme.Scheme.New(older)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(body, obj); err != nil {
				t.Fatal(err)
			}
			message, err := resource.MarshalProtobuf(obj, older)
			if err != nil {
				t.Fatal(err)
			}
			want, err := r.WithRevision(stored, 7)
			if err != nil {
				t.Fatal(err)
			}
			for form, value := range map[string][]byte{"protobuf": message, "JSON": body} {
				got, err := r.WithRevision(value, 7)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %s (%v)\nwant %s", form, got, err, want)
				}
			}
		})
	}
	for _, r := range builtin.Resources() {
		if version, ok := storedBefore[r.GroupVersionKind()]; ok != slices.Contains(r.StoredIn, version) {
			t.Errorf("%s are read in the versions %q, and may be stored in %q", r.Plural, r.StoredIn, version)
		}
	}
	pods := builtin.Table().Lookup("", "v1", "pods")
	if got, err := pods.WithRevision([]byte(`{"kind":"Pod","apiVersion":"v1beta1","metadata":{"name":"a"}}`), 7); err == nil {
		t.Errorf("a version that is stored by nobody: %s", got)
	}
}
