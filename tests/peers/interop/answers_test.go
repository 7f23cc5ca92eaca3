package interop

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/server"
)

// question is a request that client-go's typed client can make. Each is asked
// with a config map "there" in the namespace.
type question struct {
	name string
	ask  func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error
}

func named(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// readOf asks for a list and for a watch with the same options, to see that
// both are judged alike.
func readOf(name string, opts metav1.ListOptions) []question {
	return []question{
		{"list with " + name, func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			_, err := maps.List(ctx, opts)
			return err
		}},
		{"watch with " + name, func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			w, err := maps.Watch(ctx, opts)
			if err != nil {
				return err
			}
			defer w.Stop()
			return nil
		}},
	}
}

func questions() []question {
	yes := true
	asked := []question{
		{"create what exists", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			_, err := maps.Create(ctx, named("there"), metav1.CreateOptions{})
			return err
		}},
		{"create without a name", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			_, err := maps.Create(ctx, &corev1.ConfigMap{}, metav1.CreateOptions{})
			return err
		}},
		{"create with a version", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			obj := named("versioned")
			obj.ResourceVersion = "1"
			_, err := maps.Create(ctx, obj, metav1.CreateOptions{})
			return err
		}},
		{"create in another namespace", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			obj := named("elsewhere")
			obj.Namespace = "elsewhere"
			_, err := maps.Create(ctx, obj, metav1.CreateOptions{})
			return err
		}},
		{"create with an unknown dryRun", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			_, err := maps.Create(ctx, named("dry"), metav1.CreateOptions{DryRun: []string{"Some"}})
			return err
		}},
		{"get what is missing", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			_, err := maps.Get(ctx, "missing", metav1.GetOptions{})
			return err
		}},
		{"update what is missing", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			_, err := maps.Update(ctx, named("missing"), metav1.UpdateOptions{})
			return err
		}},
		{"update of an old version", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			obj := named("there")
			obj.ResourceVersion = "1"
			_, err := maps.Update(ctx, obj, metav1.UpdateOptions{})
			return err
		}},
		{"update of another UID", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			obj := named("there")
			obj.UID = "another"
			_, err := maps.Update(ctx, obj, metav1.UpdateOptions{})
			return err
		}},
		{"patch what is missing", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			_, err := maps.Patch(ctx, "missing", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			return err
		}},
		{"patch with broken JSON", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			_, err := maps.Patch(ctx, "there", types.MergePatchType, []byte(`{`), metav1.PatchOptions{})
			return err
		}},
		{"patch with a failing test", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			body := []byte(`[{"op":"test","path":"/metadata/name","value":"other"}]`)
			_, err := maps.Patch(ctx, "there", types.JSONPatchType, body, metav1.PatchOptions{})
			return err
		}},
		{"patch of an old version", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			body := []byte(`{"metadata":{"resourceVersion":"1"},"data":{"a":"b"}}`)
			_, err := maps.Patch(ctx, "there", types.MergePatchType, body, metav1.PatchOptions{})
			return err
		}},
		{"patch of an unknown kind", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			_, err := maps.Patch(ctx, "there", "application/unknown+json", []byte(`{}`), metav1.PatchOptions{})
			return err
		}},
		{"delete what is missing", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			return maps.Delete(ctx, "missing", metav1.DeleteOptions{})
		}},
		{"delete of another UID", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			return maps.Delete(ctx, "there", *metav1.NewPreconditionDeleteOptions("another"))
		}},
		{"delete of an old version", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			return maps.Delete(ctx, "there", *metav1.NewRVDeletionPrecondition("1"))
		}},
		{"delete with a broken policy", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			policy := metav1.DeletionPropagation("Sideways")
			return maps.Delete(ctx, "there", metav1.DeleteOptions{PropagationPolicy: &policy})
		}},
		{"delete a collection by a broken selector", func(ctx context.Context, maps typedcorev1.ConfigMapInterface) error {
			return maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "a=="})
		}},
	}
	for name, opts := range map[string]metav1.ListOptions{
		"a broken label selector":          {LabelSelector: "a in b"},
		"a broken field selector":          {FieldSelector: "metadata.name"},
		"an unknown field":                 {FieldSelector: "spec.unknown=a"},
		"a broken version":                 {ResourceVersion: "abc"},
		"a version match alone":            {ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		"exactly version 0":                {ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		"an unknown version match":         {ResourceVersion: "1", ResourceVersionMatch: "Roughly"},
		"initial events without a match":   {SendInitialEvents: &yes},
		"initial events and another match": {SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		"a match for initial events":       {ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
	} {
		asked = append(asked, readOf(name, opts)...)
	}
	return append(asked,
		readOf("a broken continue", metav1.ListOptions{Limit: 1, Continue: "???"})[0],
		readOf("a continue and a version", metav1.ListOptions{Limit: 1, Continue: "e30", ResourceVersion: "5"})[0],
	)
}

// deliberate lists where our server answers otherwise because a client's
// mistake is no internal error of a server's.
var deliberate = map[string]string{
	"create with a version":       "400 BadRequest",
	"watch with a broken version": "400 BadRequest",
}

// TestSameAnswers asks both servers what cannot be granted: they refuse with
// the same code and reason.
func TestSameAnswers(t *testing.T) {
	answers := map[string]map[string]string{}
	for maker, config := range serveAll(t, server.Memory) {
		answers[maker] = askAll(t, config)
	}
	for _, q := range questions() {
		our, their := answers["our server"][q.name], answers["upstream server"][q.name]
		if want, differs := deliberate[q.name]; differs && our == want && their != want {
			continue
		}
		if our != their {
			t.Errorf("%s:\nour server      %s\nupstream server %s", q.name, our, their)
		}
	}
}

func askAll(t *testing.T, config *rest.Config) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	client := clientset(t, config)
	namespace := newNamespace(t, client)
	maps := client.CoreV1().ConfigMaps(namespace)
	if _, err := maps.Create(ctx, named("there"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, q := range questions() {
		answers[q.name] = answerOf(q.ask(ctx, maps))
	}
	// Whatever was refused has changed nothing.
	list, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Data != nil {
		t.Errorf("after the refusals there is %v (%v), want the one config map as it was", list, err)
	}
	return answers
}

func answerOf(err error) string {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return fmt.Sprintf("no Status: %v", err)
	}
	return fmt.Sprintf("%d %s", status.Status().Code, status.Status().Reason)
}

// TestFutureVersions asks for versions that are not there yet: both servers
// wait a while and then ask to come back, naming the cause.
func TestFutureVersions(t *testing.T) {
	for maker, config := range serveAll(t, server.Memory) {
		t.Run(maker, func(t *testing.T) {
			t.Parallel()
			client := clientset(t, config)
			err := client.CoreV1().RESTClient().Get().Namespace(newNamespace(t, client)).Resource("configmaps").
				Param("resourceVersion", "1000000").Param("resourceVersionMatch", "NotOlderThan").
				MaxRetries(0). // client-go would ask ten times
				Do(t.Context()).Error()
			if !apierrors.IsTimeout(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
				t.Errorf("%v, want a timeout because of a version that is too large", err)
			}
			if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds != 1 {
				t.Errorf("Retry-After is %d s (%v), want 1 s", seconds, ok)
			}
		})
	}
}
