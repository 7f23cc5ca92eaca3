package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/resource"
)

// node is a piece of an OpenAPI document.
type node = map[string]any

const gvkExtension = "x-kubernetes-group-version-kind"

// openAPIv2Protobuf is what old kubectl asks for version 2 as. An @ may not be
// in a media type, and clients choke on an answer that has it, so that the
// answer is named with a dot, as Kubernetes does.
const (
	openAPIv2Protobuf       = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	openAPIv2ProtobufAnswer = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

// build makes all OpenAPI documents, once.
func (d *documents) build() error {
	d.openAPI.Do(func() { d.openError = d.buildOpenAPI() })
	return d.openError
}

func (d *documents) buildOpenAPI() error {
	d.v3 = make(map[string][]byte)
	index := node{}
	allPaths, definitions := node{}, node{}
	for _, g := range d.groups {
		for _, v := range g.versions {
			place := "api/" + v
			if g.name != "" {
				place = "apis/" + g.name + "/" + v
			}
			body, err := json.Marshal(openAPIv3(place, g.resources[v]))
			if err != nil {
				return fmt.Errorf("make OpenAPI of %s: %w", place, err)
			}
			sum := sha256.Sum256(body)
			d.v3[place] = body
			index[place] = node{"serverRelativeURL": "/openapi/v3/" + place + "?hash=" + strings.ToUpper(hex.EncodeToString(sum[:16]))}
			addOpenAPIv2(allPaths, definitions, place, g.resources[v])
		}
	}
	var err error
	if d.v3Index, err = json.Marshal(node{"paths": index}); err != nil {
		return err
	}
	d.v2, err = json.Marshal(node{
		"swagger": "2.0", "info": openAPIInfo(), "paths": allPaths, "definitions": definitions,
	})
	if err != nil {
		return err
	}
	document, err := openapi_v2.ParseDocument(d.v2)
	if err != nil {
		return fmt.Errorf("turn OpenAPI version 2 into protobuf: %w", err)
	}
	d.v2pb, err = proto.Marshal(document)
	return err
}

func openAPIInfo() node { return node{"title": "Kubernetes", "version": kubernetesVersion} }

// openAPIv3 is the document of one group and version. Its schemas say which
// kinds there are and let every field pass: fields are checked when an object
// is written, and clients of this age leave that to the server.
func openAPIv3(place string, resources []*resource.Resource) node {
	paths, schemas := node{}, node{}
	for _, res := range resources {
		name := schemaName(res)
		schemas[name] = openSchema(res.GroupVersionKind())
		ref := node{"$ref": "#/components/schemas/" + name}
		collection, single := resourcePaths(place, res)
		paths[collection] = pathItem(res, ref, verbGet, verbCreate)
		paths[single] = pathItem(res, ref, verbGet, verbUpdate, verbPatch, verbDelete)
		for _, sub := range subresourcesOf(res) {
			if sub.kind == res.GroupVersionKind() && slices.Contains(sub.verbs, verbPatch) {
				paths[single+"/"+sub.name] = pathItem(res, ref, verbGet, verbUpdate, verbPatch)
			}
		}
	}
	return node{"openapi": "3.0.0", "info": openAPIInfo(), "paths": paths, "components": node{"schemas": schemas}}
}

func resourcePaths(place string, res *resource.Resource) (collection, single string) {
	collection = "/" + place + "/"
	if res.Namespaced {
		collection += "namespaces/{namespace}/"
	}
	collection += res.Plural
	return collection, collection + "/{name}"
}

var httpMethods = map[string]string{
	verbGet: "get", verbCreate: "post", verbUpdate: "put", verbPatch: "patch", verbDelete: "delete",
}

// pathItem describes the verbs of one path in version 3.
func pathItem(res *resource.Resource, ref node, verbs ...string) node {
	item := node{}
	for _, verb := range verbs {
		if !offers(res, verb) {
			continue
		}
		operation := node{
			"operationId": verb + res.GroupVersion().String() + res.Kind,
			"parameters": queryParameters(verb, func(name, kind string) node {
				return node{"name": name, "in": "query", "schema": node{"type": kind, "uniqueItems": true}}
			}),
			"responses": node{"200": node{"description": "OK", "content": node{
				mediaNames[mediaJSON]: node{"schema": ref}}}},
			"x-kubernetes-action": verb,
			gvkExtension:          kindNode(res.GroupVersionKind()),
		}
		switch verb {
		case verbCreate, verbUpdate:
			operation["requestBody"] = node{"required": true, "content": node{"*/*": node{"schema": ref}}}
		case verbPatch:
			// Without a word about strategic merge clients take the merge
			// keys that are compiled into them, which are right for built-in kinds.
			operation["requestBody"] = node{"required": true, "content": node{
				"application/merge-patch+json": node{"schema": node{"type": "object"}},
				"application/json-patch+json":  node{"schema": node{"type": "array", "items": node{"type": "object"}}},
			}}
		}
		item[httpMethods[verb]] = operation
	}
	return item
}

// queryParameters lists what clients look for before they use it: server-side
// dry run and field validation.
func queryParameters(verb string, parameter func(name, kind string) node) []node {
	list := []node{parameter("pretty", "string")}
	if verb == verbGet {
		return list
	}
	list = append(list, parameter("dryRun", "string"))
	if verb == verbDelete {
		return append(list, parameter("gracePeriodSeconds", "integer"), parameter("propagationPolicy", "string"))
	}
	list = append(list, parameter("fieldManager", "string"), parameter("fieldValidation", "string"))
	if verb == verbPatch {
		list = append(list, parameter("force", "boolean"))
	}
	return list
}

// addOpenAPIv2 adds a group and version to the one document of version 2.
func addOpenAPIv2(paths, definitions node, place string, resources []*resource.Resource) {
	for _, res := range resources {
		definitions[schemaName(res)] = openSchema(res.GroupVersionKind())
		_, single := resourcePaths(place, res)
		if !offers(res, verbPatch) {
			continue
		}
		paths[single] = node{verbPatch: node{
			"operationId": verbPatch + res.GroupVersion().String() + res.Kind,
			"consumes":    []string{"application/json-patch+json", "application/merge-patch+json"},
			"produces":    []string{mediaNames[mediaJSON]},
			"parameters": queryParameters(verbPatch, func(name, kind string) node {
				return node{"name": name, "in": "query", "type": kind}
			}),
			"responses":           node{"200": node{"description": "OK"}},
			"x-kubernetes-action": verbPatch,
			gvkExtension:          kindNode(res.GroupVersionKind()),
		}}
	}
}

// openSchema accepts any object of a kind.
func openSchema(gvk schema.GroupVersionKind) node {
	return node{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true,
		gvkExtension: []node{kindNode(gvk)},
	}
}

func kindNode(gvk schema.GroupVersionKind) node {
	return node{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}

// schemaName is the model's name as Kubernetes publishes it, for types that
// know theirs.
func schemaName(res *resource.Resource) string {
	if named, ok := res.New().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	labels := strings.Split(res.Group, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(append(labels, res.Version, res.Kind), ".")
}

func (s *Server) serveOpenAPIv2(w http.ResponseWriter, r *http.Request) {
	d := s.described()
	if err := d.build(); err != nil {
		writeError(w, r, err)
		return
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		kind, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		if kind == openAPIv2Protobuf || kind == openAPIv2ProtobufAnswer {
			writeTagged(w, r, openAPIv2ProtobufAnswer, d.v2pb)
			return
		}
	}
	writeTagged(w, r, mediaNames[mediaJSON], d.v2)
}

func (s *Server) serveOpenAPIv3Index(w http.ResponseWriter, r *http.Request) {
	d := s.described()
	if err := d.build(); err != nil {
		writeError(w, r, err)
		return
	}
	writeTagged(w, r, mediaNames[mediaJSON], d.v3Index)
}

func (s *Server) serveOpenAPIv3(w http.ResponseWriter, r *http.Request) {
	d := s.described()
	if err := d.build(); err != nil {
		writeError(w, r, err)
		return
	}
	body, ok := d.v3[strings.TrimPrefix(strings.TrimSuffix(r.URL.Path, "/"), "/openapi/v3/")]
	if !ok {
		writeError(w, r, errNoSuchPath())
		return
	}
	writeTagged(w, r, mediaNames[mediaJSON], body)
}
