package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

func TestCreateSetsWhatClientsDoNotOwn(t *testing.T) {
	f := newFixture(t)
	sent := newPod("a", "")
	sent.UID, sent.Generation = "mine", 7
	sent.CreationTimestamp = metav1.Now()
	sent.DeletionTimestamp = &metav1.Time{Time: f.clock.Now()}
	sent.Status.Phase = corev1.PodRunning
	result := f.create(t, "pods", sent)
	got := result.Object.(*corev1.Pod)
	if got.UID == "" || got.UID == "mine" || got.Generation != 1 || got.DeletionTimestamp != nil || got.Status.Phase != "" {
		t.Errorf("the server's fields are %+v, status %+v", got.ObjectMeta, got.Status)
	}
	if !got.CreationTimestamp.Time.Equal(f.clock.Now()) || got.Namespace != "default" {
		t.Errorf("created at %v in %q", got.CreationTimestamp, got.Namespace)
	}
	if got.ResourceVersion != fmt.Sprint(int64(result.Revision)) || !result.Created {
		t.Errorf("resourceVersion %q, revision %d, created %v", got.ResourceVersion, result.Revision, result.Created)
	}
	var shown corev1.Pod
	if err := json.Unmarshal(result.JSON, &shown); err != nil || shown.ResourceVersion != got.ResourceVersion || shown.Kind != "Pod" {
		t.Errorf("JSON is %s (%v)", result.JSON, err)
	}
	kv, err := f.store.Get(t.Context(), "/registry/pods/default/a", 0)
	if err != nil || kv.Modified != result.Revision || strings.Contains(string(kv.Value), "resourceVersion") {
		t.Errorf("stored %s at %d (%v)", kv.Value, kv.Modified, err)
	}
}

// TestGenerationOfOtherKinds: of a kind without generations, a new object has what the client says; later
// it stays.
func TestGenerationOfOtherKinds(t *testing.T) {
	f := newFixture(t)
	sent := configMap("a", "1")
	sent.Generation = 7
	if got := f.create(t, "configmaps", sent).Object; got.GetGeneration() != 7 {
		t.Errorf("generation %d", got.GetGeneration())
	}
	changed := configMap("a", "2")
	changed.Generation = 9
	result, err := f.of(t, "configmaps").Update(t.Context(), "default", "a", replacing(changed), registry.UpdateOptions{})
	if err != nil || result.Object.GetGeneration() != 7 {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestFirstGeneration: of a kind whose new objects have no generation, changes count from what the client says.
func TestFirstGeneration(t *testing.T) {
	f := newFixture(t)
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Data: map[string][]byte{"a": []byte(value)}}
	}
	result := f.create(t, "secrets", secret("1"))
	for i, value := range []string{"1", "2", "2", "3"} {
		if got, want := result.Object.GetGeneration(), []int64{0, 0, 1, 1}[i]; got != want {
			t.Errorf("before change %d: generation %d, not %d", i, got, want)
		}
		sent := secret(value)
		sent.ResourceVersion = result.Object.GetResourceVersion()
		var err error
		if result, err = f.of(t, "secrets").Update(t.Context(), "default", "a", replacing(sent), registry.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := result.Object.GetGeneration(); got != 2 {
		t.Errorf("at last: generation %d", got)
	}
}

func TestCreateRefuses(t *testing.T) {
	f := newFixture(t)
	f.create(t, "configmaps", configMap("taken", ""))
	long := strings.Repeat("x", 64)
	yes := true
	owner := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: "u", Controller: &yes}
	}
	tests := []struct {
		name, namespace string
		change          func(*corev1.ConfigMap)
		code            int32
		reason          metav1.StatusReason
		message         string
	}{
		{"taken", "default", nil, 409, metav1.StatusReasonAlreadyExists, `configmaps "taken" already exists`},
		{"a", "nowhere", nil, 404, metav1.StatusReasonNotFound, `namespaces "nowhere" not found`},
		{"", "default", nil, 422, metav1.StatusReasonInvalid, "name or generateName is required"},
		{"", "default", func(c *corev1.ConfigMap) { // one byte more, once it is completed, than annotations may have
			c.Labels, c.Annotations = map[string]string{"by": "a"}, map[string]string{"k": strings.Repeat("x", 256<<10-1)}
		}, 422, metav1.StatusReasonInvalid, "metadata.annotations"},
		{"a/b", "default", nil, 422, metav1.StatusReasonInvalid, "metadata.name"},
		{"..", "default", nil, 422, metav1.StatusReasonInvalid, "metadata.name"},
		{"a", "default", func(c *corev1.ConfigMap) { c.GenerateName = "a%b" }, 422, metav1.StatusReasonInvalid, "metadata.generateName"},
		{"a", "default", func(c *corev1.ConfigMap) { c.Namespace = "other" }, 400, metav1.StatusReasonBadRequest,
			"the namespace of the provided object does not match the namespace sent on the request"},
		{"a", "default", func(c *corev1.ConfigMap) { c.ResourceVersion = "5" }, 400, metav1.StatusReasonBadRequest,
			"resourceVersion should not be set on objects to be created"},
		{"a", "default", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"k": long} }, 422, metav1.StatusReasonInvalid, "metadata.labels"},
		{"a", "default", func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"k": strings.Repeat("x", 256<<10)} }, 422,
			metav1.StatusReasonInvalid, "metadata.annotations"},
		{"a", "default", func(c *corev1.ConfigMap) { c.Finalizers = []string{"not qualified"} }, 422, metav1.StatusReasonInvalid, "metadata.finalizers"},
		{"a", "default", func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{owner("x"), owner("y")} }, 422,
			metav1.StatusReasonInvalid, "metadata.ownerReferences"},
		{"a", "default", func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{owner("")} }, 422,
			metav1.StatusReasonInvalid, "metadata.ownerReferences"},
	}
	before, err := f.store.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		obj := configMap(test.name, "")
		if test.change != nil {
			test.change(obj)
		}
		_, err := f.of(t, "configmaps").Create(t.Context(), test.namespace, obj, registry.WriteOptions{})
		wantStatus(t, fmt.Sprintf("%q in %q", test.name, test.namespace), err, test.code, test.reason, test.message)
	}
	if after, err := f.store.Current(t.Context()); err != nil || after != before {
		t.Errorf("refused creates moved the store from %d to %d (%v)", before, after, err)
	}
}

// TestMistakesAreSaidOnce: two labels with the same wrong value are one cause, as in Kubernetes, and
// the name's comes first.
func TestMistakesAreSaidOnce(t *testing.T) {
	f := newFixture(t)
	obj := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "A", Labels: map[string]string{"a": "?", "b": "?"}}}
	_, err := f.of(t, "limitranges").Create(t.Context(), "default", obj, registry.WriteOptions{})
	var refused *apierrors.StatusError
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	var fields []string
	for _, cause := range refused.ErrStatus.Details.Causes {
		fields = append(fields, cause.Field)
	}
	if want := []string{"metadata.name", "metadata.labels"}; !slices.Equal(fields, want) {
		t.Errorf("mistakes in %q, not %q", fields, want)
	}
}

// TestMetadataIfValid: what is wrong with the metadata of a few kinds is said only if nothing else is.
func TestMetadataIfValid(t *testing.T) {
	f := newFixture(t)
	one := intstr.FromInt32(1)
	for want, spec := range map[string]policyv1.PodDisruptionBudgetSpec{
		"spec": {MinAvailable: &one, MaxUnavailable: &one}, "metadata.labels": {MinAvailable: &one},
	} {
		obj := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "?"}}, Spec: spec}
		_, err := f.of(t, "poddisruptionbudgets").Create(t.Context(), "default", obj, registry.WriteOptions{})
		var refused *apierrors.StatusError
		if !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if causes := refused.ErrStatus.Details.Causes; len(causes) != 1 || causes[0].Field != want {
			t.Errorf("mistakes %+v, not in %s alone", causes, want)
		}
	}
}

// TestUnnamedLimitRange: Kubernetes gives it a name, which it does for no other kind.
func TestUnnamedLimitRange(t *testing.T) {
	f := newFixture(t)
	ranges := f.of(t, "limitranges")
	first, err := ranges.Create(t.Context(), "default", &corev1.LimitRange{}, registry.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := ranges.Create(t.Context(), "default", &corev1.LimitRange{}, registry.WriteOptions{})
	if err != nil || first.Object.GetName() == "" || first.Object.GetName() == second.Object.GetName() {
		t.Errorf("named %q and %q (%v)", first.Object.GetName(), second.Object.GetName(), err)
	}
	generated, err := ranges.Create(t.Context(), "default", &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{GenerateName: "small-"}}, registry.WriteOptions{})
	if err != nil || !strings.HasPrefix(generated.Object.GetName(), "small-") {
		t.Errorf("named %+v (%v)", generated, err)
	}
}

// TestCreateWithARevision: Kubernetes' store refuses it, after the validation, so that
// a dry run does not get as far.
func TestCreateWithARevision(t *testing.T) {
	f := newFixture(t)
	send := func(name, version string, opts registry.WriteOptions) (*registry.Result, error) {
		obj := configMap(name, "")
		obj.ResourceVersion = version
		return f.of(t, "configmaps").Create(t.Context(), "default", obj, opts)
	}
	create := func(name string, opts registry.WriteOptions) error {
		_, err := send(name, "5", opts)
		return err
	}
	for _, version := range []string{"", "0", "5", "new"} {
		result, err := send("a", version, registry.WriteOptions{DryRun: true})
		if err != nil || result.Object.GetResourceVersion() != version {
			t.Errorf("a dry run with %q: %+v, %v", version, result, err)
		}
	}
	for _, version := range []string{"0", "new", "-1"} { // is none
		result, err := send("with"+version, version, registry.WriteOptions{})
		if err != nil || result.Object.GetResourceVersion() != fmt.Sprint(int64(result.Revision)) {
			t.Errorf("with %q: %+v, %v", version, result, err)
		}
	}
	wantStatus(t, "without dry run", create("a", registry.WriteOptions{}), 400, metav1.StatusReasonBadRequest, "resourceVersion should not be set")
	for _, opts := range []registry.WriteOptions{{}, {DryRun: true}} {
		wantStatus(t, "an invalid one", create("a/b", opts), 422, metav1.StatusReasonInvalid, "metadata.name")
	}
}

func wantStatus(t *testing.T, what string, err error, code int32, reason metav1.StatusReason, message string) {
	t.Helper()
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // every error of the package is one
	if !ok {
		t.Errorf("%s: error %v is no Status", what, err)
		return
	}
	got := status.Status()
	if got.Code != code || got.Reason != reason || !strings.Contains(got.Message, message) {
		t.Errorf("%s: %d %s %q, want %d %s %q", what, got.Code, got.Reason, got.Message, code, reason, message)
	}
}

// TestGenerateNameOfAddresses: of an IPAddress, the address is the name.
func TestGenerateNameOfAddresses(t *testing.T) {
	r := newFixture(t).of(t, "ipaddresses")
	result, err := r.Create(t.Context(), "", &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{GenerateName: "10.0.0.7"}}, registry.WriteOptions{})
	if err != nil || result.Object.GetName() != "10.0.0.7" {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestGenerateNameTriesOtherSuffixes(t *testing.T) {
	suffixes := []string{"aaaaa", "aaaaa", "aaaaa", "bbbbb"}
	f := newFixture(t, func(c *registry.Config) {
		c.NameSuffix = func() string {
			next := suffixes[0]
			if len(suffixes) > 1 {
				suffixes = suffixes[1:]
			}
			return next
		}
	})
	generate := func() (*registry.Result, error) {
		obj := configMap("", "")
		obj.GenerateName = strings.Repeat("n", 60) + "-"
		return f.of(t, "configmaps").Create(t.Context(), "default", obj, registry.WriteOptions{})
	}
	for _, want := range []string{"aaaaa", "bbbbb"} {
		result, err := generate()
		if err != nil {
			t.Fatal(err)
		}
		if name := result.Object.GetName(); name != strings.Repeat("n", 58)+want {
			t.Errorf("generated %q, want a prefix of 58 and %s", name, want)
		}
	}
	_, err := generate()
	wantStatus(t, "no suffix is free", err, 409, metav1.StatusReasonAlreadyExists, "the server was not able to generate a unique name")
}

// TestTakenNamesAreRefusedInOtherWords if what has the name is being deleted, and if the name could
// have been generated.
func TestTakenNamesAreRefusedInOtherWords(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"stays", "goes"} {
		obj := configMap(name, "")
		obj.Finalizers = []string{"example.com/wait"}
		f.create(t, "configmaps", obj)
	}
	if _, err := f.of(t, "configmaps").Delete(t.Context(), "default", "goes", nil); err != nil {
		t.Fatal(err)
	}
	const generated = "the server was not able to generate a unique name for the object"
	for _, dryRun := range []bool{false, true} {
		for _, test := range []struct{ name, generateName, want string }{
			{"stays", "", `configmaps "stays" already exists`},
			{"stays", "st", `configmaps "stays" already exists, ` + generated},
			{"goes", "", `object is being deleted: configmaps "goes" already exists`},
			{"goes", "go", `object is being deleted: configmaps "goes" already exists, ` + generated},
		} {
			obj := configMap(test.name, "")
			obj.GenerateName = test.generateName
			_, err := f.of(t, "configmaps").Create(t.Context(), "default", obj, registry.WriteOptions{DryRun: dryRun})
			if !apierrors.IsAlreadyExists(err) || err.Error() != test.want {
				t.Errorf("dry run %v: %v, want %s", dryRun, err, test.want)
			}
		}
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	f := newFixture(t)
	created := f.create(t, "configmaps", configMap("a", "1"))
	r, dry := f.of(t, "configmaps"), registry.WriteOptions{DryRun: true}
	result, err := r.Create(t.Context(), "default", configMap("b", ""), dry)
	if err != nil || result.Object.GetUID() == "" || result.Object.GetResourceVersion() != "" {
		t.Errorf("dry create: %+v, %v", result, err)
	}
	_, err = r.Create(t.Context(), "default", configMap("a", ""), dry)
	wantStatus(t, "dry create of what exists", err, 409, metav1.StatusReasonAlreadyExists, "already exists")
	result, err = r.Update(t.Context(), "default", "a", func(resource.Object) (resource.Object, error) {
		return configMap("a", "2"), nil
	}, registry.UpdateOptions{WriteOptions: dry})
	if err != nil || result.Object.(*corev1.ConfigMap).Data["key"] != "2" || result.Revision != created.Revision {
		t.Errorf("dry update: %+v, %v", result, err)
	}
	deleted, err := r.Delete(t.Context(), "default", "a", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || !deleted.Deleted {
		t.Errorf("dry delete: %+v, %v", deleted, err)
	}
	f.create(t, "pods", newPod("p", ""))
	gone, err := f.of(t, "pods").Delete(t.Context(), "default", "p", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || !gone.Deleted || gone.Object.GetDeletionTimestamp() == nil {
		t.Errorf("dry delete of a pod: %+v, %v", gone, err)
	}
	if n := len(f.events(t, "/registry/pods/", created.Revision)); n != 1 {
		t.Errorf("a dry delete of a pod made %d events beside its creation", n-1)
	}
	if n := len(f.events(t, "/registry/configmaps/", created.Revision)); n != 0 {
		t.Errorf("dry runs made %d events", n)
	}
}
