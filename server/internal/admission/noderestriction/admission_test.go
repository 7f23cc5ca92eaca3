package noderestriction_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/subresource"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a server with the Node authorizer and two nodes, one and two.
type cluster struct {
	t          *testing.T
	admin, one *client.Client
}

func start(t *testing.T, change ...func(*server.Config)) *cluster {
	t.Helper()
	s := levelwiretest.Start(t, append(change, func(c *server.Config) { c.AuthorizationModes = []string{"Node", "RBAC"} })...)
	config := s.Config()
	config.Impersonate.UserName, config.Impersonate.Groups = "system:node:one", []string{"system:nodes"}
	one, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(one.CloseIdleConnections)
	c := &cluster{t, s.Client(client.Options{}), one}
	for _, namespace := range []string{corev1.NamespaceNodeLease} {
		_, err := client.For[*corev1.Namespace](c.admin).Get(t.Context(), namespace, metav1.GetOptions{})
		c.must(err)
	}
	return c
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// expect checks that a write was allowed, if says is empty, or refused for that reason.
func (c *cluster) expect(what string, err error, says string) {
	c.t.Helper()
	switch {
	case says == "" && err != nil:
		c.t.Errorf("%s: %v", what, err)
	case says != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says)):
		c.t.Errorf("%s: %v, want a 403 with %q", what, err, says)
	}
}

func makeIn[T client.Object](c *cluster, as *client.Client, namespace string, obj T) (T, error) {
	c.t.Helper()
	r := client.For[T](as)
	if namespace != "" {
		r = r.Namespace(namespace)
	}
	return r.Create(c.t.Context(), obj, metav1.CreateOptions{})
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func (c *cluster) node(as *client.Client, name string, labels map[string]string) (*corev1.Node, error) {
	c.t.Helper()
	return makeIn(c, as, "", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
}

func (c *cluster) pod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	c.t.Helper()
	p := &corev1.Pod{ObjectMeta: named(name), Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	for _, f := range change {
		f(p)
	}
	made, err := makeIn(c, c.admin, "default", p)
	c.must(err)
	return made
}

func merge[T client.Object](c *cluster, as *client.Client, namespace, name, patch string, subresource ...string) error {
	c.t.Helper()
	r := client.For[T](as)
	if namespace != "" {
		r = r.Namespace(namespace)
	}
	_, err := r.Patch(c.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
	return err
}

// TestNodes: a node changes its own Node, but not what decides which pods run on it.
func TestNodes(t *testing.T) {
	c := start(t)
	_, err := c.node(c.one, "two", nil)
	c.expect("another node", err, `node "one" is not allowed to modify node "two"`)
	_, err = c.node(c.one, "one", map[string]string{"node-restriction.kubernetes.io/fips": "true", "node-role.kubernetes.io/x": "", "kubernetes.io/os": "linux"})
	c.expect("protected labels", err, `node "one" is not allowed to set the following labels: node-restriction.kubernetes.io/fips, node-role.kubernetes.io/x`)
	_, err = makeIn(c, c.one, "", &corev1.Node{ObjectMeta: named("one"), Spec: corev1.NodeSpec{
		ConfigSource: &corev1.NodeConfigSource{}, //nolint:staticcheck // a node must not set it although it is deprecated
	}})
	c.expect("a configuration", err, "with a non-nil configSource")
	_, err = makeIn(c, c.one, "", &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{
			"kubernetes.io/hostname": "one", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": "z",
			"topology.kubernetes.io/region": "r", "node.kubernetes.io/instance-type": "m", "node.kubernetes.io/any": "x",
			"x.kubelet.kubernetes.io/any": "x", "beta.kubernetes.io/os": "linux", "example.com/any": "x", "plain": "x",
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "new", Effect: corev1.TaintEffectNoSchedule}}},
	})
	c.expect("its own", err, "")
	_, err = c.node(c.admin, "two", map[string]string{"node-restriction.kubernetes.io/fips": "true"})
	c.must(err)
	for what, test := range map[string]struct{ name, patch, sub, says string }{
		"status":              {"one", `{"status":{"phase":"Running"}}`, "status", ""},
		"another's status":    {"two", `{"status":{"phase":"Running"}}`, "status", "is not allowed to modify node"},
		"another":             {"two", `{"metadata":{"labels":{"a":"b"}}}`, "", "is not allowed to modify node"},
		"a label":             {"one", `{"metadata":{"labels":{"a":"b"}}}`, "", ""},
		"a zone":              {"one", `{"metadata":{"labels":{"topology.kubernetes.io/zone":"y"}}}`, "", ""},
		"a role":              {"one", `{"metadata":{"labels":{"node-role.kubernetes.io/a":""}}}`, "", "is not allowed to modify labels: node-role.kubernetes.io/a"},
		"k8s.io":              {"one", `{"metadata":{"labels":{"x.k8s.io/a":""}}}`, "", "labels: x.k8s.io/a"},
		"below restriction":   {"one", `{"metadata":{"labels":{"a.node-restriction.kubernetes.io/a":""}}}`, "", "labels: a.node-restriction"},
		"a label by status":   {"one", `{"metadata":{"labels":{"node-restriction.kubernetes.io/a":""}}}`, "status", "labels: node-restriction"},
		"taints":              {"one", `{"spec":{"taints":null}}`, "", `node "one" is not allowed to modify taints`},
		"unschedulable":       {"one", `{"spec":{"unschedulable":true}}`, "", ""},
		"owners":              {"one", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"two","uid":"u"}]}}`, "", "is not allowed to modify ownerReferences"},
		"a new configuration": {"one", `{"spec":{"configSource":{"configMap":{"name":"a","namespace":"a","kubeletConfigKey":"k"}}}}`, "", "to a new non-nil configSource"},
	} {
		var sub []string
		if test.sub != "" {
			sub = append(sub, test.sub)
		}
		c.expect(what, merge[*corev1.Node](c, c.one, "", test.name, test.patch, sub...), test.says)
	}
	c.expect("the administrator", merge[*corev1.Node](c, c.admin, "", "one", `{"spec":{"taints":null}}`), "")
}

// TestPods: a node ends its own pods and writes their status.
func TestPods(t *testing.T) {
	c := start(t)
	for _, name := range []string{"one", "two"} {
		_, err := c.node(c.admin, name, nil)
		c.must(err)
	}
	_, _ = c.pod("mine", "one"), c.pod("yours", "two")
	const started = `{"status":{"phase":"Running"}}`
	c.expect("status", merge[*corev1.Pod](c, c.one, "default", "mine", started, "status"), "")
	c.expect("another's status", merge[*corev1.Pod](c, c.one, "default", "yours", started, "status"), `node "one" can only update pod status for pods with spec.nodeName set to itself`)
	c.expect("labels", merge[*corev1.Pod](c, c.one, "default", "mine", `{"metadata":{"labels":{"a":"b"}}}`, "status"), "cannot update labels through pod status")
	c.expect("claims", merge[*corev1.Pod](c, c.one, "default", "mine", `{"status":{"resourceClaimStatuses":[{"name":"a","resourceClaimName":"other"}]}}`, "status"), "cannot update resource claim")
	c.expect("extended claims", merge[*corev1.Pod](c, c.one, "default", "mine", `{"status":{"extendedResourceClaimStatus":{"resourceClaimName":"other","requestMappings":[]}}}`, "status"), "cannot update extended resource claim status")

	pods := client.For[*corev1.Pod](c.one).Namespace("default")
	evict := func(name string) error { return subresource.Evict(t.Context(), pods, name, metav1.DeleteOptions{}) }
	c.expect("another's eviction", evict("yours"), "node one can only evict pods with spec.nodeName set to itself")
	if pod, err := client.For[*corev1.Pod](c.admin).Namespace("default").Get(t.Context(), "yours", metav1.GetOptions{}); err != nil || len(pod.Status.Conditions) > 1 {
		t.Errorf("the refused eviction left a trace: %+v, %v", pod.Status.Conditions, err)
	}
	c.expect("an eviction", evict("mine"), "")
	_ = c.pod("ended", "one")
	c.expect("another's end", pods.Delete(t.Context(), "yours", metav1.DeleteOptions{}), `node "one" can only delete pods with spec.nodeName set to itself`)
	now := int64(0)
	c.expect("the end", pods.Delete(t.Context(), "ended", metav1.DeleteOptions{GracePeriodSeconds: &now}), "")
}

// TestMirrorPods: a node creates mirror pods that lead to nothing, and no others.
func TestMirrorPods(t *testing.T) {
	c := start(t)
	own, err := c.node(c.admin, "one", nil)
	c.must(err)
	truth := true
	mirror := func(change func(*corev1.Pod)) error {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: "static-", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "hash"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "one", UID: own.UID, Controller: &truth}},
			},
			Spec: corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		change(p)
		_, err := makeIn(c, c.one, "default", p)
		return err
	}
	source := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
	}
	projected := func(source corev1.VolumeProjection) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source}}}}}
		}
	}
	owner := func(change func(*metav1.OwnerReference)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(&p.OwnerReferences[0]) }
	}
	ref := corev1.LocalObjectReference{Name: "s"}
	for what, test := range map[string]struct {
		change func(*corev1.Pod)
		says   string
	}{
		"a mirror pod":      {func(*corev1.Pod) {}, ""},
		"files of the node": {source(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}), ""},
		"no mirror pod":     {func(p *corev1.Pod) { p.Annotations = nil; p.Spec.ServiceAccountName = "default" }, "can only create mirror pods"},
		"another node":      {func(p *corev1.Pod) { p.Spec.NodeName = "two" }, "can only create pods with spec.nodeName set to itself"},
		"no owner":          {func(p *corev1.Pod) { p.OwnerReferences = nil }, "with an owner reference set to itself"},
		"two owners": {func(p *corev1.Pod) {
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "two", UID: "u"})
		}, "with a single owner reference"},
		"another owner":                {owner(func(o *metav1.OwnerReference) { o.Name = "two" }), "with an owner reference set to itself"},
		"no controller":                {owner(func(o *metav1.OwnerReference) { o.Controller = nil }), "with a controller owner reference"},
		"a blocking owner":             {owner(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = &truth }), "must not set blockOwnerDeletion"},
		"another uid":                  {owner(func(o *metav1.OwnerReference) { o.UID = "u" }), "UID mismatch"},
		"an account":                   {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "default" }, "a mirror pod may not reference service accounts"},
		"a pull secret":                {func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{ref} }, "a mirror pod may not reference secrets"},
		"a pull secret without a name": {func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{}} }, ""},
		"a secret":                     {source(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}), "reference secrets"},
		"a secret variable": {func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}}}
		}, "reference secrets"},
		"a map":              {source(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref}}), "reference configmaps"},
		"a claim":            {source(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "s"}}), "reference persistentvolumeclaims"},
		"a driver":           {source(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}), "csidrivers"},
		"a projected secret": {projected(corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: ref}}), "reference secrets"},
		"a projected token":  {projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}), "ServiceAccountToken volume projections"},
		"a devices' claim": {func(p *corev1.Pod) {
			name := "d"
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "d", ResourceClaimTemplateName: &name}}
		}, "reference resourceclaims"},
		"a projected trust":    {projected(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "t"}}), "clustertrustbundles"},
		"a projected download": {projected(corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}}), ""},
	} {
		c.expect(what, mirror(test.change), test.says)
	}
}

// TestMirrorPodsWithoutThePlugin: without NodeRestriction, nodes create no pods at all.
func TestMirrorPodsWithoutThePlugin(t *testing.T) {
	c := start(t, func(c *server.Config) { c.DisableAdmissionPlugins = []string{"NodeRestriction"} })
	_, err := makeIn(c, c.one, "default", &corev1.Pod{ObjectMeta: named("a"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}})
	c.expect("a pod", err, "the admission plugin NodeRestriction is disabled")
}

// TestTokens: a node gets tokens that are bound to its pods, for audiences that they name.
func TestTokens(t *testing.T) {
	c := start(t)
	for _, name := range []string{"vault", "driver"} {
		_, err := makeIn(c, c.admin, "", &storagev1.CSIDriver{ObjectMeta: named(name), Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: name}}}})
		c.must(err)
	}
	mine := c.pod("mine", "one", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{Name: "p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t", Audience: "projected"}},
			}}}},
			{Name: "c", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "driver"}}},
		}
	})
	yours := c.pod("yours", "two")
	request := func(pod *corev1.Pod, change func(*authenticationv1.TokenRequestSpec)) error {
		spec := authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}
		change(&spec)
		accounts := client.For[*corev1.ServiceAccount](c.one).Namespace("default")
		_, err := subresource.CreateToken(t.Context(), accounts, "default", spec)
		return err
	}
	audience := func(names ...string) func(*authenticationv1.TokenRequestSpec) {
		return func(s *authenticationv1.TokenRequestSpec) { s.Audiences = names }
	}
	c.expect("the server's audience", request(mine, audience()), "")
	c.expect("a projected audience", request(mine, audience("projected")), "")
	c.expect("a driver's audience", request(mine, audience("driver")), "")
	c.expect("another driver's", request(mine, audience("vault")), `system:node:one is not authorized to request tokens for audience "vault"`)
	c.expect("two audiences", request(mine, audience("projected", "driver")), "node may only request 0 or 1 audiences")
	c.expect("another node's pod", request(yours, audience()), "node requested token bound to a pod scheduled on a different node")
	c.expect("no pod", request(mine, func(s *authenticationv1.TokenRequestSpec) { s.BoundObjectRef = nil }), "node requested token not bound to a pod")
	c.expect("a node", request(mine, func(s *authenticationv1.TokenRequestSpec) { s.BoundObjectRef.Kind = "Node" }), "node requested token not bound to a pod")
	c.expect("no uid", request(mine, func(s *authenticationv1.TokenRequestSpec) { s.BoundObjectRef.UID = "" }), "without a uid")
	c.expect("another uid", request(mine, func(s *authenticationv1.TokenRequestSpec) { s.BoundObjectRef.UID = "u" }), "does not match the UID in record")

	_, err := makeIn(c, c.admin, "", &rbacv1.ClusterRole{ObjectMeta: named("vault"), Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"request-serviceaccounts-token-audience"}, APIGroups: []string{""}, Resources: []string{"vault"}, ResourceNames: []string{"default"}},
	}})
	c.must(err)
	_, err = makeIn(c, c.admin, "", &rbacv1.ClusterRoleBinding{
		ObjectMeta: named("vault"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "vault"},
		Subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:nodes"}},
	})
	c.must(err)
	c.expect("an audience that is granted", request(mine, audience("vault")), "")
}

// TestOwnObjects: of the kinds that have an object for each node, a node writes its own.
func TestOwnObjects(t *testing.T) {
	c := start(t)
	lease := func(namespace, name string) error {
		_, err := makeIn(c, c.one, namespace, &coordinationv1.Lease{ObjectMeta: named(name)})
		return err
	}
	c.expect("its lease", lease(corev1.NamespaceNodeLease, "one"), "")
	c.expect("another lease", lease(corev1.NamespaceNodeLease, "two"), "can only access node lease with the same name as the requesting node")
	_, err := makeIn(c, c.one, "", &storagev1.CSINode{ObjectMeta: named("one")})
	c.expect("its CSINode", err, "")
	_, err = makeIn(c, c.one, "", &storagev1.CSINode{ObjectMeta: named("two")})
	c.expect("another CSINode", err, "can only access CSINode with the same name as the requesting node")

	slice := func(as *client.Client, name, node string) error {
		_, err := makeIn(c, as, "", &resourcev1.ResourceSlice{ObjectMeta: named(name), Spec: resourcev1.ResourceSliceSpec{
			Driver: "d.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
		}})
		return err
	}
	c.expect("its slice", slice(c.one, "mine", "one"), "")
	c.expect("another slice", slice(c.one, "false", "two"), "can only create ResourceSlice with the same NodeName")
	c.must(slice(c.admin, "yours", "two"))
	c.expect("the end of its slice", client.For[*resourcev1.ResourceSlice](c.one).Delete(t.Context(), "mine", metav1.DeleteOptions{}), "")

	c.must(claim(c))
	c.expect("a claim's size", merge[*corev1.PersistentVolumeClaim](c, c.one, "default", "data", `{"status":{"capacity":{"storage":"2Gi"},"conditions":[{"type":"Resizing","status":"True"}]}}`, "status"), "")
	c.expect("a claim's phase", merge[*corev1.PersistentVolumeClaim](c, c.one, "default", "data", `{"status":{"phase":"Lost"}}`, "status"), "is not allowed to update fields other than")
	c.expect("a claim's labels", merge[*corev1.PersistentVolumeClaim](c, c.one, "default", "data", `{"metadata":{"labels":{"a":"b"}}}`, "status"), "is not allowed to update fields other than")
}

// claim makes a claim and a pod of the node one that uses it.
func claim(c *cluster) error {
	_, err := makeIn(c, c.admin, "default", &corev1.PersistentVolumeClaim{ObjectMeta: named("data"), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": apiresource.MustParse("1Gi")}},
	}})
	c.pod("user", "one", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	return err
}

// TestCertificates: a node requests certificates of its own.
func TestCertificates(t *testing.T) {
	c := start(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.must(err)
	request := func(name, signer, user string) error {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{"system:nodes"}}}, key)
		c.must(err)
		_, err = makeIn(c, c.one, "", &certificatesv1.CertificateSigningRequest{ObjectMeta: named(name), Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		}})
		return err
	}
	c.expect("its own", request("a", certificatesv1.KubeAPIServerClientKubeletSignerName, "system:node:one"), "")
	c.expect("another's", request("b", certificatesv1.KubeAPIServerClientKubeletSignerName, "system:node:two"), "can only create a node CSR with CN=system:node:one")
	c.expect("another's for serving", request("c", certificatesv1.KubeletServingSignerName, "system:node:two"), "can only create a node CSR with CN=system:node:one")
	c.expect("of another signer", request("d", "example.com/s", "any"), "")
}

// TestPodCertificates: a node requests certificates for its pods as they are, of the signers that these name.
func TestPodCertificates(t *testing.T) {
	c := start(t)
	node, err := c.node(c.one, "one", nil)
	c.must(err)
	two, err := c.node(c.admin, "two", nil)
	c.must(err)
	volume := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{PodCertificate: &corev1.PodCertificateProjection{SignerName: "example.com/named", KeyType: "ECDSAP256", CredentialBundlePath: "b"}},
		}}}}}
	}
	mine, yours := c.pod("mine", "one", volume), c.pod("yours", "two", volume)
	account, err := client.For[*corev1.ServiceAccount](c.admin).Namespace("default").Get(t.Context(), "default", metav1.GetOptions{})
	c.must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.must(err)
	stub, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	c.must(err)
	request := func(pod *corev1.Pod, change func(*certificatesv1.PodCertificateRequestSpec)) error {
		q := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "q-"}, Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: "example.com/named", PodName: pod.Name, PodUID: pod.UID, ServiceAccountName: account.Name, ServiceAccountUID: account.UID,
			NodeName: "one", NodeUID: node.UID, StubPKCS10Request: stub,
		}}
		change(&q.Spec)
		_, err := makeIn(c, c.one, "default", q)
		return err
	}
	type spec = certificatesv1.PodCertificateRequestSpec
	c.expect("of its pod", request(mine, func(*spec) {}), "")
	c.expect("for another node", request(yours, func(s *spec) { s.NodeName, s.NodeUID = "two", two.UID }), `PodCertificateRequest.Spec.NodeName="two", which is not the requesting node "one"`)
	c.expect("of another node's pod", request(yours, func(*spec) {}), `pod "default/yours" is not running on node "one"`)
	c.expect("of another account", request(mine, func(s *spec) { s.ServiceAccountName = "other" }), "that differs from running pod")
	c.expect("of a signer that no volume names", request(mine, func(s *spec) { s.SignerName = "example.com/granted" }),
		`pod "default/mine" does not mount a podCertificate projected volume for signer "example.com/granted"`)
	// What may be right a moment later, the kubelet should try again: it is not forbidden.
	for what, change := range map[string]func(*spec){
		"a node that was there before":     func(s *spec) { s.NodeUID = "before" },
		"a pod that was there before":      func(s *spec) { s.PodUID = "before" },
		"an account that was there before": func(s *spec) { s.ServiceAccountUID = "before" },
		"no pod":                           func(s *spec) { s.PodName = "none" },
	} {
		if err := request(mine, change); err == nil || apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want an error that is no 403", what, err)
		}
	}
	if err := request(mine, func(s *spec) { s.PodName = "none" }); apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `while retrieving pod "default/none"`) {
		t.Errorf("no pod: %v, want an error that says of what", err)
	}
	made, err := client.For[*certificatesv1.PodCertificateRequest](c.one).Namespace("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=one"})
	if err != nil || len(made.Items) != 1 {
		t.Fatalf("the node lists %v, %v; want its one request", made, err)
	}

	_, err = makeIn(c, c.admin, "", &rbacv1.ClusterRole{ObjectMeta: named("granted"), Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"request-serviceaccounts-podcertificate-signer"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"example.com:granted"}, ResourceNames: []string{"default"}},
	}})
	c.must(err)
	_, err = makeIn(c, c.admin, "", &rbacv1.ClusterRoleBinding{
		ObjectMeta: named("granted"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "granted"},
		Subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:nodes"}},
	})
	c.must(err)
	c.expect("of a signer that is granted", request(mine, func(s *spec) { s.SignerName = "example.com/granted" }), "")
}
