package openapi

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	jsonType     = "application/json"
	yamlType     = "application/yaml"
	protobufType = "application/vnd.kubernetes.protobuf"
	cborType     = "application/cbor"
	cborSequence = "application/cbor-seq"
	watchSuffix  = ";stream=watch"
)

// operation is what the descriptions of one verb on one path differ in.
type operation struct {
	id     string // "listCoreV1NamespacedPod"
	action string // x-kubernetes-action: "list"
	doc    string
	kind   schema.GroupVersionKind
	custom bool // no protobuf, no strategic merge patch

	parameters []spec.Parameter
	consumes   []string
	stream     bool // a watch may be the answer
	codes      []int
	answer     *spec.Schema
	deprecated bool
}

func (g *group) operation(o operation) *spec.Operation {
	op := &spec.Operation{}
	op.ID, op.Description, op.Tags = o.id, o.doc, []string{g.tag}
	op.Produces, op.Consumes, op.Schemes = produced(o.custom, o.stream), o.consumes, []string{"https"}
	if op.Consumes == nil {
		op.Consumes = anyType
	}
	op.Parameters, op.Deprecated = o.parameters, o.deprecated
	op.Responses = responses(o.answer, o.codes...)
	op.AddExtension("x-kubernetes-action", o.action)
	op.AddExtension(kindExtension, kindValue(o.kind))
	return op
}

// responses describes the answers of an operation: all successes have the same
// form, and the server may refuse every operation to an unauthenticated client.
func responses(answer *spec.Schema, codes ...int) *spec.Responses {
	all := map[int]spec.Response{
		http.StatusUnauthorized: {ResponseProps: spec.ResponseProps{Description: http.StatusText(http.StatusUnauthorized)}},
	}
	for _, code := range codes {
		all[code] = spec.Response{ResponseProps: spec.ResponseProps{Description: http.StatusText(code), Schema: answer}}
	}
	return &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: all}}
}

// anyType is said of bodies: what a server does not read it answers with 415.
var anyType = []string{"*/*"}

func produced(custom, stream bool) []string {
	types := []string{jsonType, yamlType, protobufType, cborType}
	if stream {
		types = append(types, jsonType+watchSuffix, protobufType+watchSuffix, cborSequence)
	}
	if custom {
		types = slices.DeleteFunc(types, func(t string) bool { return strings.HasPrefix(t, protobufType) })
	}
	return types
}

// patchTypes are the patches of RFC 6902 and 7386, of KEP-555, and for kinds
// with a Go type the strategic ones: clients look for them here before they
// send one.
func patchTypes(custom bool) []string {
	types := []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
	if !custom {
		types = append(types, "application/strategic-merge-patch+json")
	}
	return types
}

// identifier returns a group and version as they stand in operation ids:
// "RbacAuthorizationV1", "CoreV1".
func identifier(gv schema.GroupVersion) string {
	var id strings.Builder
	for part := range strings.FieldsFuncSeq(groupLabel(gv.Group), func(r rune) bool { return r == '.' || r == '-' }) {
		id.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return id.String() + strings.ToUpper(gv.Version[:1]) + gv.Version[1:]
}

// tagOf returns a group and version as tags name them: "rbacAuthorization_v1".
func tagOf(gv schema.GroupVersion) string {
	id := identifier(gv)
	id = id[:len(id)-len(gv.Version)]
	return strings.ToLower(id[:1]) + id[1:] + "_" + gv.Version
}

func groupLabel(group string) string {
	if group == "" {
		return "core"
	}
	return strings.TrimSuffix(group, ".k8s.io")
}
