package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
)

// ConvertFunc converts an object from one API version to another one. It returns
// a new object, or changes the one that it got if the types are the same. It
// need not set apiVersion and kind, nor copy metadata: those are carried over,
// except for labels and annotations if it has set the metadata. It is called by
// many goroutines at once.
type ConvertFunc[From, To client.Object] func(from From) (To, error)

// Conversion is what Between returns.
type Conversion struct {
	steps   [2]step
	invalid error
}

// step converts in one direction.
type step struct {
	from, to schema.GroupVersionKind
	decode   func([]byte) (client.Object, error)
	convert  func(client.Object) (client.Object, error)
}

// Between says how objects of a kind are converted between two API versions,
// in both directions: API servers need both. The Go types of the two versions
// differ or are both *unstructured.Unstructured. A kind with more versions
// needs only as many conversions as lead from each to each, by way of others:
// between the stored version and each other one, say.
func Between[A, B client.Object](a, b schema.GroupVersionKind, toB ConvertFunc[A, B], toA ConvertFunc[B, A]) Conversion {
	c := Conversion{steps: [2]step{newStep(a, b, toB), newStep(b, a, toA)}}
	switch {
	case toA == nil || toB == nil:
		c.invalid = fmt.Errorf("a conversion between %v and %v needs both functions", a, b)
	case a.Group != b.Group || a.Kind != b.Kind || a.Version == b.Version:
		c.invalid = fmt.Errorf("a conversion is between versions of one kind, not between %v and %v", a, b)
	default:
		c.invalid = errors.Join(checkType[A](), checkType[B]())
	}
	return c
}

func newStep[From, To client.Object](from, to schema.GroupVersionKind, convert ConvertFunc[From, To]) step {
	return step{
		from: from, to: to,
		decode: func(data []byte) (client.Object, error) { return decode[From](data) },
		convert: func(obj client.Object) (client.Object, error) {
			typed, ok := obj.(From)
			if !ok {
				return nil, fmt.Errorf("%v is a %T in one conversion and a %v in another", from, obj, reflect.TypeFor[From]())
			}
			return convert(typed)
		},
	}
}

// Convert returns the handler of a conversion webhook. It serves all kinds that
// the conversions are for.
func Convert(conversions ...Conversion) *Handler {
	h := &Handler{MaxBodyBytes: DefaultMaxConversionBytes, maxBody: DefaultMaxConversionBytes}
	var all steps
	for _, c := range conversions {
		h.invalid = errors.Join(h.invalid, c.invalid)
		all = append(all, c.steps[:]...)
	}
	if len(all) == 0 {
		h.invalid = errors.New("the webhook converts nothing")
	}
	h.review = func(ctx context.Context, body []byte) (any, error) {
		var review conversionReview
		if err := unmarshal(body, &review); err != nil {
			return nil, badReview{fmt.Errorf("no ConversionReview: %w", err)}
		}
		if want := conversionReviewVersion.WithKind("ConversionReview"); review.GroupVersionKind() != want {
			return nil, badReview{fmt.Errorf("got a review of %v, not %v: set conversionReviewVersions to [v1]", review.GroupVersionKind(), want)}
		}
		if review.Request == nil {
			return nil, badReview{errors.New("the ConversionReview has no request")}
		}
		response := &conversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		converted, err := all.convertAll(ctx, review.Request)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("out of time: %w", context.Cause(ctx))
		case err != nil:
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
		default:
			response.ConvertedObjects = converted
		}
		return conversionReview{TypeMeta: review.TypeMeta, Response: response}, nil
	}
	return h
}

type steps []step

// convertAll converts all objects or none.
func (s steps) convertAll(ctx context.Context, request *conversionRequest) ([]json.RawMessage, error) {
	desired, err := schema.ParseGroupVersion(request.DesiredAPIVersion)
	if err != nil {
		return nil, err
	}
	converted := make([]json.RawMessage, 0, len(request.Objects))
	for n, object := range request.Objects {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out, err := s.convert(object, desired)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", n, err)
		}
		converted = append(converted, out)
	}
	return converted, nil
}

// header is what has to be known of an object before its type is.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        map[string]json.RawMessage `json:"metadata"`
}

func (s steps) convert(object json.RawMessage, desired schema.GroupVersion) (json.RawMessage, error) {
	var head header
	if err := unmarshal(object, &head); err != nil {
		return nil, err
	}
	from, to := head.GroupVersionKind(), desired.WithKind(head.Kind)
	if from == to {
		return object, nil
	}
	path := s.path(from, to)
	if path == nil {
		return nil, fmt.Errorf("this webhook has no conversion from %v to %v", from, to)
	}
	obj, err := path[0].decode(object)
	if err != nil {
		return nil, fmt.Errorf("decoding a %v: %w", from, err)
	}
	for _, step := range path {
		if obj, err = step.convert(obj); err != nil {
			return nil, fmt.Errorf("%s %s from %v to %v: %w", head.Kind, head.Metadata["name"], step.from.Version, step.to.Version, err)
		}
		if obj == nil || reflect.ValueOf(obj).IsNil() {
			return nil, fmt.Errorf("the conversion of %s from %v to %v returned nil", head.Kind, step.from.Version, step.to.Version)
		}
	}
	return encodeConverted(obj, to, head.Metadata)
}

// path returns the shortest sequence of steps between two versions; nil: none.
func (s steps) path(from, to schema.GroupVersionKind) []step {
	paths := map[schema.GroupVersionKind][]step{from: {}}
	for next := []schema.GroupVersionKind{from}; len(next) > 0; next = next[1:] {
		if at := next[0]; at == to {
			return paths[at]
		}
		for _, step := range s {
			if _, known := paths[step.to]; !known && step.from == next[0] {
				paths[step.to] = append(slices.Clone(paths[next[0]]), step)
				next = append(next, step.to)
			}
		}
	}
	return nil
}

// encodeConverted gives a converted object its apiVersion, its kind, and the
// metadata it had. API servers refuse changes of metadata other than labels and
// annotations.
func encodeConverted(obj client.Object, to schema.GroupVersionKind, metadata map[string]json.RawMessage) (json.RawMessage, error) {
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	if obj.GetName() != "" || obj.GetUID() != "" {
		for name, values := range map[string]map[string]string{"labels": obj.GetLabels(), "annotations": obj.GetAnnotations()} {
			delete(metadata, name)
			if len(values) > 0 {
				encoded, err := json.Marshal(values)
				if err != nil {
					return nil, err
				}
				metadata[name] = encoded
			}
		}
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding a %v: %w", to, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("encoding a %v: %w", to, err)
	}
	for name, value := range map[string]any{"apiVersion": to.GroupVersion().String(), "kind": to.Kind, "metadata": metadata} {
		if fields[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
}
