package nodeauthorizer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/rbac/defaults"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the write path and the caches over a store in memory.
type fixture struct {
	*testing.T
	set  *registry.Set
	node *Authorizer
}

func newFixture(t *testing.T, fed bool) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	caches := map[*resource.Resource]*watchcache.Cache{}
	var list []*watchcache.Cache
	table := builtin.Table()
	for _, res := range table.All() {
		if res.Storage == nil {
			caches[res] = watchcache.New(res, watchcache.Options{})
			list = append(list, caches[res])
		}
	}
	set, err := registry.NewSet(registry.Config{
		Store: store, Resources: table,
		Cache: func(stored *resource.Resource) *watchcache.Cache { return caches[stored] },
	})
	must(t, err)
	if fed {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = feed.New(store, list, feed.Options{}).Run(ctx)
		}()
		t.Cleanup(func() { cancel(); <-done })
		for _, c := range list {
			must(t, c.WaitReady(t.Context()))
		}
	}
	node, err := New(set, Options{Rules: defaults.NodeRules(), MirrorPods: true, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return &fixture{T: t, set: set, node: node}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) create(group, plural string, obj resource.Object) {
	f.Helper()
	r, ok := f.set.Lookup(group, "v1", plural)
	if !ok {
		f.Fatalf("%s are not served", plural)
	}
	_, err := r.Create(f.Context(), obj.GetNamespace(), obj, registry.WriteOptions{})
	must(f.T, err)
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func ref(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

// pod refers to objects of every kind, named after it.
func pod(name, node string) *corev1.Pod {
	claim := "device-" + name
	return &corev1.Pod{ObjectMeta: named("a", name), Spec: corev1.PodSpec{
		NodeName: node, ServiceAccountName: "account-" + name,
		ImagePullSecrets: []corev1.LocalObjectReference{ref("pull-" + name)},
		ResourceClaims:   []corev1.PodResourceClaim{{Name: "d", ResourceClaimName: &claim}},
		InitContainers: []corev1.Container{{Name: "i", Image: "i", EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("env-" + name)}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("env-" + name)}},
		}}},
		Containers: []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{
			{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("key-" + name), Key: "k"}}},
			{Name: "B", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("key-" + name), Key: "k"}}},
		}}},
		Volumes: []corev1.Volume{
			{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume-" + name}}},
			{Name: "m", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("volume-" + name)}}},
			{Name: "p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: ref("projected-" + name)}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref("projected-" + name)}},
			}}}},
			{Name: "c", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim-" + name}}},
			{Name: "e", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": apiresource.MustParse("1Gi")}},
				},
			}}}},
		},
	}}
}

func volume(name, claim, secret string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: named("", name), Spec: corev1.PersistentVolumeSpec{
		Capacity:    corev1.ResourceList{"storage": apiresource.MustParse("1Gi")},
		AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
		ClaimRef:    &corev1.ObjectReference{Namespace: "a", Name: claim},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "d", VolumeHandle: name,
			NodeStageSecretRef:         &corev1.SecretReference{Namespace: "storage", Name: secret},
			ControllerPublishSecretRef: &corev1.SecretReference{Namespace: "storage", Name: "controller-" + secret},
		}},
	}}
}

func certificateRequest(t *testing.T, name, node string) *certificatesv1.PodCertificateRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	stub, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(t, err)
	return &certificatesv1.PodCertificateRequest{ObjectMeta: named("a", name), Spec: certificatesv1.PodCertificateRequestSpec{
		SignerName: "example.com/s", PodName: "p", PodUID: "p", ServiceAccountName: "s", ServiceAccountUID: "s",
		NodeName: types.NodeName(node), NodeUID: "n", StubPKCS10Request: stub,
	}}
}

const unrelated = "no relationship found between node 'one' and this object"

// TestNode: what the node one may do, which has the pod mine, while the node two has
// yours.
func TestNode(t *testing.T) {
	f := newFixture(t, true)
	for _, name := range []string{"a", "b", "storage"} {
		must(t, namespace.Ensure(t.Context(), f.set, name))
	}
	f.create("", "pods", pod("mine", "one"))
	f.create("", "pods", pod("yours", "two"))
	mirror := pod("mirror", "one")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	mirror.Spec.ResourceClaims = nil // a mirror pod cannot have any
	f.create("", "pods", mirror)
	f.create("", "persistentvolumes", volume("disk-mine", "claim-mine", "stage-mine"))
	f.create("", "persistentvolumes", volume("disk-yours", "claim-yours", "stage-yours"))
	for name, node := range map[string]string{"attached-mine": "one", "attached-yours": "two"} {
		f.create(storagev1.GroupName, "volumeattachments", &storagev1.VolumeAttachment{ObjectMeta: named("", name), Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "d", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name},
		}})
	}
	for name, node := range map[string]string{"certificate-mine": "one", "certificate-yours": "two"} {
		f.create(certificatesv1.GroupName, "podcertificaterequests", certificateRequest(t, name, node))
	}
	const certificates = "can only list/watch podcertificaterequests with nodeName field selector"
	const pods = "can only list/watch pods with spec.nodeName field selector"
	for asked, want := range map[string]string{ // reason; "" if it is allowed, "-" if it is not and there is none
		"get secrets a/volume-mine":                                                   "",
		"list secrets a/volume-mine":                                                  "",
		"watch secrets a/pull-mine":                                                   "",
		"get secrets a/env-mine":                                                      "",
		"get secrets a/key-mine":                                                      "",
		"get secrets a/projected-mine":                                                "",
		"get secrets a/volume-yours":                                                  unrelated,
		"get secrets a/volume-mirror":                                                 unrelated,
		"get secrets b/volume-mine":                                                   unrelated,
		"get secrets a/account-mine":                                                  unrelated,
		"list secrets a/":                                                             "No Object name found",
		"list secrets /":                                                              "can only read namespaced object of this type",
		"update secrets a/volume-mine":                                                "can only read resources of this type",
		"get secrets storage/stage-mine":                                              "",
		"get secrets storage/controller-stage-mine":                                   unrelated,
		"get secrets storage/stage-yours":                                             unrelated,
		"get configmaps a/volume-mine":                                                "",
		"get configmaps a/env-mine":                                                   "",
		"get configmaps a/key-mine":                                                   "",
		"get configmaps a/projected-mine":                                             "",
		"get configmaps a/volume-yours":                                               unrelated,
		"get persistentvolumeclaims a/claim-mine":                                     "",
		"get persistentvolumeclaims a/mine-e":                                         "",
		"get persistentvolumeclaims a/claim-yours":                                    unrelated,
		"list persistentvolumeclaims a/":                                              "can only get individual resources of this type",
		"patch persistentvolumeclaims/status a/claim-mine":                            "",
		"patch persistentvolumeclaims/status a/claim-yours":                           unrelated,
		"get persistentvolumes /disk-mine":                                            "",
		"get persistentvolumes /disk-yours":                                           unrelated,
		"get persistentvolumes /disk-nobodys":                                         unrelated,
		"get resource.k8s.io:resourceclaims a/device-mine":                            "",
		"get resource.k8s.io:resourceclaims a/device-yours":                           unrelated,
		"get storage.k8s.io:volumeattachments /attached-mine":                         "",
		"get storage.k8s.io:volumeattachments /attached-yours":                        unrelated,
		"get serviceaccounts a/account-mine":                                          "",
		"create serviceaccounts/token a/account-mine":                                 "",
		"create serviceaccounts/token a/account-yours":                                unrelated,
		"create serviceaccounts a/":                                                   "can only create tokens for individual service accounts",
		"update coordination.k8s.io:leases kube-node-lease/one":                       "",
		"create coordination.k8s.io:leases kube-node-lease/":                          "",
		"update coordination.k8s.io:leases kube-node-lease/two":                       "can only access node lease with the same name as the requesting node",
		"update coordination.k8s.io:leases kube-system/one":                           `can only access leases in the "kube-node-lease" system namespace`,
		"list coordination.k8s.io:leases kube-node-lease/":                            "can only get, create, update, patch, or delete a node lease",
		"patch storage.k8s.io:csinodes /one":                                          "",
		"patch storage.k8s.io:csinodes /two":                                          "can only access CSINode with the same name as the requesting node",
		"get nodes /one":                                                              "",
		"watch nodes /one":                                                            "",
		"get nodes /two":                                                              "node 'one' cannot read 'two', only its own Node object",
		"list nodes /":                                                                "node 'one' cannot read all nodes, only its own Node object",
		"patch nodes/status /one":                                                     "",
		"delete nodes /one":                                                           "-",
		"create pods a/":                                                              "",
		"get pods a/mine":                                                             "",
		"get pods a/yours":                                                            unrelated,
		"list pods / spec.nodeName=one":                                               "",
		"watch pods / status.phase!=Failed,spec.nodeName=one":                         "",
		"watch pods / spec.nodeName=two":                                              pods,
		"watch pods / spec.nodeName!=one":                                             pods,
		"list pods a/":                                                                pods,
		"update pods/status a/mine":                                                   "",
		"create pods/eviction a/mine":                                                 "",
		"create pods/binding a/mine":                                                  "-",
		"list resource.k8s.io:resourceslices / spec.nodeName=one":                     "",
		"deletecollection resource.k8s.io:resourceslices /":                           "can only list/watch/deletecollection resourceslices with nodeName field selector",
		"list services /":                                                             "",
		"create services a/":                                                          "-",
		"watch node.k8s.io:runtimeclasses /":                                          "",
		"create events.k8s.io:events a/":                                              "",
		"create certificates.k8s.io:certificatesigningrequests /":                     "",
		"create certificates.k8s.io:podcertificaterequests a/":                        "",
		"get certificates.k8s.io:podcertificaterequests a/certificate-mine":           "",
		"get certificates.k8s.io:podcertificaterequests a/certificate-yours":          unrelated,
		"list certificates.k8s.io:podcertificaterequests / spec.nodeName=one":         "",
		"watch certificates.k8s.io:podcertificaterequests a/ spec.nodeName=one":       "",
		"watch certificates.k8s.io:podcertificaterequests / spec.nodeName=two":        certificates,
		"list certificates.k8s.io:podcertificaterequests a/":                          certificates,
		"delete certificates.k8s.io:podcertificaterequests a/certificate-mine":        "nodes may not delete podcertificaterequests",
		"update certificates.k8s.io:podcertificaterequests/status a/certificate-mine": "nodes may not access the status subresource of PodCertificateRequests",
		"watch certificates.k8s.io:clustertrustbundles /":                             "",
		"create certificates.k8s.io:clustertrustbundles /":                            "-",
		"list apps:deployments /":                                                     "-",
		"create authorization.k8s.io:subjectaccessreviews /":                          "",
		"impersonate users /x":                                                        "-",
		"create authorization.k8s.io:selfsubjectaccessreviews /":                      "-",
		"get rbac.authorization.k8s.io:clusterroles /cluster-admin":                   "-",
		"get resource.k8s.io:resourceslices /unknown":                                 unrelated,
		"patch storage.k8s.io:csinodes/status /one":                                   "CSINode status access requires CSIVolumeHealth feature",
		"get persistentvolumes/status /disk-mine":                                     "cannot get subresource",
		"create serviceaccounts/other a/account-mine":                                 "can only create token subresource of serviceaccount",
		"get persistentvolumeclaims/status a/claim-mine":                              "can only get/update/patch this type",
		"create resource.k8s.io:resourceslices /":                                     "",
		"create storage.k8s.io:csinodes /":                                            "",
		"get secrets/x a/volume-mine":                                                 "cannot read subresource",
		"bind storage.k8s.io:csinodes /one":                                           "can only get, create, update, patch, or delete a CSINode",
		"get storage.k8s.io:csinodes/other /one":                                      "cannot authorize CSINode subresources",
		"bind resource.k8s.io:resourceslices /x":                                      "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
		"get resource.k8s.io:resourceslices/status /x":                                "cannot authorize ResourceSlice subresources",
	} {
		a := parse(t, asked)
		a.User = auth.User{Name: "system:node:one", Groups: []string{"system:nodes", "system:authenticated"}}
		f.expect(asked, a, want)
	}
	for _, other := range []auth.User{{Name: "one", Groups: []string{"system:nodes"}}, {Name: "system:node:one"}} {
		a := parse(t, "get secrets a/volume-mine")
		a.User = other
		f.expect(other.Name, a, "-")
	}
	nameless := parse(t, "get secrets a/volume-mine")
	nameless.User = auth.User{Name: "system:node:", Groups: []string{"system:nodes"}}
	f.expect("a node without a name", nameless, `unknown node for user "system:node:"`)

	r, _ := f.set.Lookup("", "v1", "pods")
	_, err := r.Delete(t.Context(), "a", "mine", &metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	must(t, err)
	gone := parse(t, "get secrets a/volume-mine")
	gone.User = auth.User{Name: "system:node:one", Groups: []string{"system:nodes"}}
	f.expect("after the pod is gone", gone, unrelated)
}

// parse reads "verb group:resource/subresource namespace/name selector".
func parse(t *testing.T, asked string) auth.Attributes {
	t.Helper()
	parts := strings.Fields(asked)
	if len(parts) < 3 {
		t.Fatal(asked)
	}
	a := auth.Attributes{Verb: parts[0], Version: "v1"}
	if group, resource, ok := strings.Cut(parts[1], ":"); ok {
		a.Group, a.Resource = group, resource
	} else {
		a.Resource = parts[1]
	}
	a.Resource, a.Subresource, _ = strings.Cut(a.Resource, "/")
	a.Namespace, a.Name, _ = strings.Cut(parts[2], "/")
	if len(parts) > 3 {
		a.FieldSelector = parts[3]
	}
	return a
}

func (f *fixture) expect(what string, a auth.Attributes, want string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 3*time.Minute)
	defer cancel()
	decision, reason, err := f.node.Authorize(ctx, a)
	if decision == auth.NoOpinion && reason == "" {
		reason = "-"
	}
	if reason != want || err != nil {
		f.Errorf("%s: decision %d, %q, %v; want %q", what, decision, reason, err, want)
	}
}

// TestNodeBeforeTheCachesAreFilled asks to come back.
func TestNodeBeforeTheCachesAreFilled(t *testing.T) {
	f := newFixture(t, false)
	a := parse(t, "get secrets a/volume-mine")
	a.User = auth.User{Name: "system:node:one", Groups: []string{"system:nodes"}}
	if decision, _, err := f.node.Authorize(t.Context(), a); decision != auth.NoOpinion || !errors.Is(err, auth.ErrNotReady) {
		t.Errorf("decision %d, %v", decision, err)
	}
}
