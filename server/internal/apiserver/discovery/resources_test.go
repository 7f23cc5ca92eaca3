package discovery

import (
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestStorageVersionHash compares with what kube-apiserver answers.
func TestStorageVersionHash(t *testing.T) {
	for want, res := range map[string]*resource.Resource{
		"xPOwRZ+Yhw8=": {Version: "v1", Kind: "Pod", Plural: "pods", StorePrefix: "/registry/pods/"},
		"8aSe+NMegvE=": {Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", StorePrefix: "/registry/deployments/"},
		"":             {Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview", Plural: "subjectaccessreviews"},
	} {
		if got := apiResources([]*resource.Resource{res})[0].StorageVersionHash; got != want {
			t.Errorf("%s: %q, want %q", res.Kind, got, want)
		}
		// Another version of what is stored has the hash of the stored one.
		shown := &resource.Resource{Group: "other", Version: "v2", Kind: res.Kind, Storage: res}
		if got := apiResources([]*resource.Resource{shown})[0].StorageVersionHash; got != want {
			t.Errorf("%s in another version: %q, want %q", res.Kind, got, want)
		}
	}
}
