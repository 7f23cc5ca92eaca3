package customresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/levelwire/levelwire/server/internal/webhookclient"
)

// Bounds of one call of a conversion webhook.
const (
	conversionTimeout = 30 * time.Second
	maxConvertedBytes = 4 << 20   // of one object; a request may have 3 MiB
	maxAnswerBytes    = 256 << 20 // of all objects of a call
	// A webhook that hangs keeps goroutines of ours until its calls time out.
	maxConversions = 200 // calls of one webhook at a time
)

// Webhooks makes the connections to conversion webhooks.
type Webhooks struct {
	// Resolve returns the address, host:port, at which a Service is reached.
	// Default: its name in the cluster's DNS, NAME.NAMESPACE.svc, and the port.
	Resolve webhookclient.Resolve
}

// hook calls one definition's conversion webhook.
type hook struct {
	kind    string
	version string // of ConversionReview
	client  *webhookclient.Client
	broken  error // why the webhook cannot be called; nil if it can
	health  availability
}

// caller returns the converter of a definition whose strategy is Webhook. An error
// in its configuration is the answer to every conversion.
func (w *Webhooks) caller(crd *crdMeta) *hook {
	c := &hook{kind: crd.Spec.Names.Kind}
	config := crd.Spec.Conversion.Webhook
	if config == nil || config.ClientConfig == nil {
		c.broken = errors.New("spec.conversion.webhook.clientConfig is missing")
		return c
	}
	known := slices.IndexFunc(config.ConversionReviewVersions, func(v string) bool { return v == "v1" || v == "v1beta1" })
	if known < 0 {
		c.broken = fmt.Errorf("none of its conversionReviewVersions %v is supported: use v1", config.ConversionReviewVersions)
		return c
	}
	c.version = config.ConversionReviewVersions[known]
	c.client, c.broken = webhookclient.New(target(config.ClientConfig), w.resolve())
	return c
}

// resolve may be called on nil.
func (w *Webhooks) resolve() webhookclient.Resolve {
	if w == nil {
		return nil
	}
	return w.Resolve
}

// target says where a conversion webhook is.
func target(config *apiextensionsv1.WebhookClientConfig) webhookclient.Target {
	at := webhookclient.Target{CABundle: config.CABundle}
	switch s := config.Service; {
	case config.URL != nil:
		at.URL = *config.URL
	case s != nil:
		at.Service = &webhookclient.Service{Namespace: s.Namespace, Name: s.Name, Path: ptr.Deref(s.Path, ""), Port: ptr.Deref(s.Port, 443)}
	}
	return at
}

// close closes idle connections.
func (c *hook) close() {
	if c.client != nil {
		c.client.Close()
	}
}

// review is a ConversionReview. v1 and v1beta1 look the same.
type review struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Request    *reviewRequest  `json:"request,omitempty"`
	Response   *reviewResponse `json:"response,omitempty"`
}

type reviewRequest struct {
	UID               string           `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

type reviewResponse struct {
	UID              string            `json:"uid"`
	ConvertedObjects []json.RawMessage `json:"convertedObjects"`
	Result           struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	} `json:"result"`
}

// convert implements converter with one call for all objects.
func (c *hook) convert(ctx context.Context, objects []*unstructured.Unstructured, apiVersion string) ([]*unstructured.Unstructured, error) {
	converted, err := c.call(ctx, objects, apiVersion)
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %s, Kind=%s failed: %w", objects[0].GetAPIVersion(), c.kind, err)
	}
	if len(converted) != len(objects) {
		return nil, fmt.Errorf("conversion webhook for %s, Kind=%s returned %d objects, expected %d",
			objects[0].GetAPIVersion(), c.kind, len(converted), len(objects))
	}
	out := make([]*unstructured.Unstructured, len(objects))
	for i, raw := range converted {
		u := &unstructured.Unstructured{}
		err := u.UnmarshalJSON(raw)
		if err == nil {
			err = checkConverted(objects[i], u, apiVersion)
		}
		if err == nil {
			err = restoreMeta(objects[i], u)
		}
		if err != nil {
			return nil, fmt.Errorf("conversion webhook for %s, Kind=%s returned an invalid object at index %d: %w",
				objects[0].GetAPIVersion(), c.kind, i, err)
		}
		out[i] = u
	}
	return out, nil
}

func (c *hook) call(ctx context.Context, objects []*unstructured.Unstructured, apiVersion string) ([]json.RawMessage, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	request := review{APIVersion: apiextensionsv1.GroupName + "/" + c.version, Kind: "ConversionReview", Request: &reviewRequest{
		UID: uuid.NewString(), DesiredAPIVersion: apiVersion, Objects: make([]map[string]any, len(objects)),
	}}
	for i, u := range objects {
		request.Request.Objects[i] = u.Object
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	answer, err := c.tryPost(ctx, body, min(len(objects)*maxConvertedBytes, maxAnswerBytes))
	if err != nil {
		return nil, err
	}
	var got review
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, fmt.Errorf("its answer is no ConversionReview: %w", err)
	}
	switch r := got.Response; {
	case got.APIVersion != request.APIVersion || got.Kind != request.Kind:
		return nil, fmt.Errorf("expected webhook response of %s, Kind=ConversionReview, got %s, Kind=%s", request.APIVersion, got.APIVersion, got.Kind)
	case r == nil:
		return nil, errors.New("no response provided")
	case r.UID != request.Request.UID:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", request.Request.UID, r.UID)
	case r.Result.Status != "Success" && r.Result.Message != "":
		return nil, errors.New(r.Result.Message)
	case r.Result.Status != "Success":
		return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", r.Result.Status)
	}
	return got.Response.ConvertedObjects, nil
}

// checkConverted refuses a converted object in which the webhook has changed what
// it must not change.
func checkConverted(in, out *unstructured.Unstructured, apiVersion string) error {
	for _, part := range []struct{ name, want, got string }{
		{"apiVersion", apiVersion, out.GetAPIVersion()},
		{"kind", in.GetKind(), out.GetKind()},
		{"metadata.name", in.GetName(), out.GetName()},
		{"metadata.namespace", in.GetNamespace(), out.GetNamespace()},
		{"metadata.uid", string(in.GetUID()), string(out.GetUID())},
	} {
		if part.want != part.got {
			return fmt.Errorf("%s must be %q, and is %q", part.name, part.want, part.got)
		}
	}
	return nil
}

// restoreMeta gives the converted object the metadata of the original. A webhook
// may change only labels and annotations.
func restoreMeta(in, out *unstructured.Unstructured) error {
	changed, ok := out.Object["metadata"].(map[string]any)
	if !ok {
		return errors.New("it has no metadata")
	}
	restored := map[string]any{}
	if original, ok := in.Object["metadata"].(map[string]any); ok {
		for name, value := range original {
			restored[name] = value
		}
	}
	for _, name := range []string{"labels", "annotations"} {
		delete(restored, name)
		value, found := changed[name]
		if !found || value == nil {
			continue
		}
		pairs, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("metadata.%s must be an object, and is a %T", name, value)
		}
		for key, v := range pairs {
			if _, ok := v.(string); !ok {
				return fmt.Errorf("metadata.%s[%s] must be a string, and is a %T", name, key, v)
			}
		}
		restored[name] = pairs
	}
	out.Object["metadata"] = restored
	return nil
}
