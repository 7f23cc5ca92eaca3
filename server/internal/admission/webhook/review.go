package webhook

import (
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
)

const reviewKind = "AdmissionReview"

// review returns the AdmissionReview that a webhook is sent. v1beta1 looks the same as v1.
func (r *request) review(h *hook, v *version, uid types.UID) ([]byte, error) {
	options, err := json.Marshal(r.q.Options())
	if err != nil {
		return nil, err
	}
	asked := r.endpoint()
	dryRun := r.q.DryRun
	return json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.GroupName + "/" + h.version, Kind: reviewKind},
		Request: &admissionv1.AdmissionRequest{
			UID:  uid,
			Kind: metav1.GroupVersionKind(v.endpoint.Kind), Resource: metav1.GroupVersionResource(v.endpoint.Resource), SubResource: r.q.Subresource,
			RequestKind: new(metav1.GroupVersionKind(asked.Kind)), RequestResource: new(metav1.GroupVersionResource(asked.Resource)),
			RequestSubResource: r.q.Subresource,
			Name:               r.q.Name, Namespace: r.namespace(), Operation: admissionv1.Operation(operationOf(r.q.Operation)),
			UserInfo: expressions.UserInfo(r.user), DryRun: &dryRun,
			Object: runtime.RawExtension{Raw: v.object}, OldObject: runtime.RawExtension{Raw: v.old}, Options: runtime.RawExtension{Raw: options},
		},
	})
}

// verify reads an answer, and refuses one that is not to the question.
func verify(h *hook, mutating bool, uid types.UID, answer []byte) (*admissionv1.AdmissionResponse, error) {
	var got admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, fmt.Errorf("its answer is no AdmissionReview: %w", err)
	}
	response := got.Response
	if response == nil {
		return nil, errors.New("webhook response was absent")
	}
	if h.version != "v1" {
		// v1beta1 demands neither the uid nor the kind, and knows one type of patch.
		response.PatchType = nil
		if !mutating {
			response.Patch = nil
		}
		if len(response.Patch) > 0 {
			response.PatchType = new(admissionv1.PatchTypeJSONPatch)
		}
		return response, nil
	}
	if response.UID != uid {
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, response.UID)
	}
	if want := admissionv1.SchemeGroupVersion.WithKind(reviewKind); got.GroupVersionKind() != want {
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want, got.GroupVersionKind())
	}
	return response, checkPatch(response, mutating)
}

func checkPatch(response *admissionv1.AdmissionResponse, mutating bool) error {
	patched, typed := len(response.Patch) > 0, response.PatchType != nil
	switch {
	case !mutating && patched:
		return errors.New("validating webhook may not return response.patch")
	case !mutating && typed:
		return errors.New("validating webhook may not return response.patchType")
	case patched && !typed:
		return errors.New("webhook returned response.patch but not response.patchType")
	case typed && !patched:
		return errors.New("webhook returned response.patchType but not response.patch")
	case typed && *response.PatchType == "":
		return fmt.Errorf("webhook returned invalid response.patchType of %q", "")
	}
	return nil
}
