package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/yaml"
)

const (
	asYAML     = "application/yaml"
	asProtobuf = "application/vnd.kubernetes.protobuf"
	asCBOR     = "application/cbor"
	// noContentType stands for a body without a Content-Type.
	noContentType = "none"
)

// typed has the kinds that have a form in protobuf: those of client-go and of the servers behind it, and
// objects of which only the metadata is asked for.
var typed = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(s); err != nil {
			panic(err) // the kinds are fixed
		}
	}
	return s
}()

// comparedHeaders are those of an answer that both servers must set alike; others are of one answer
// (Date, Audit-Id) or of one server's objects.
var comparedHeaders = []string{"Content-Type", "Cache-Control", "Vary", "Location", "Allow", "Retry-After", "X-Content-Type-Options", "Accept-Patch"}

// parseFormat reads an answer in the format that its header names, as JSON would have it.
func parseFormat(response *http.Response) (*answer, error) {
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	a := newAnswer(response)
	if a.Body, err = parseBody(response.Header.Get("Content-Type"), text); err != nil {
		a.Body, a.Text = nil, string(text)
	}
	return a, nil
}

// newAnswer is an answer without what it says in its body.
func newAnswer(response *http.Response) *answer {
	a := &answer{At: time.Now(), Code: response.StatusCode, Warnings: response.Header.Values("Warning"), Headers: map[string]string{}}
	for _, name := range comparedHeaders {
		if values := response.Header.Values(name); len(values) > 0 {
			a.Headers[name] = fmt.Sprint(values)
		}
	}
	return a
}

func parseBody(contentType string, text []byte) (map[string]any, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, err
	}
	switch media {
	case asYAML:
		if text, err = yaml.YAMLToJSON(text); err != nil {
			return nil, err
		}
	case asProtobuf:
		if text, err = protobufToJSON(text); err != nil {
			return nil, err
		}
	case asCBOR:
		var value map[string]any
		if err := direct.Unmarshal(text, &value); err != nil {
			return nil, err
		}
		if text, err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return parseJSON(text)
}

func protobufToJSON(text []byte) ([]byte, error) {
	object, _, err := protobuf.NewSerializer(typed, typed).Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// encode returns a body in the format of its type; in JSON, which bodyOf makes of it, if it is none of
// those that are tried.
func encode(contentType string, body any) (any, error) {
	encoding := map[string]func([]byte) ([]byte, error){asYAML: yaml.JSONToYAML, asProtobuf: jsonToProtobuf, asCBOR: jsonToCBOR}[contentType]
	if encoding == nil {
		return body, nil
	}
	encoded, err := encoding([]byte(literal(body)))
	return rawBody(encoded), err
}

// hasProtobuf reports whether objects of a kind can be sent in protobuf.
func hasProtobuf(k *kind) bool {
	return typed.Recognizes(runtimeschema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind})
}

func jsonToProtobuf(text []byte) ([]byte, error) {
	object, _, err := serializer.NewCodecFactory(typed).UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	var encoded bytes.Buffer
	err = protobuf.NewSerializer(typed, typed).Encode(object, &encoded)
	return encoded.Bytes(), err
}

func jsonToCBOR(text []byte) ([]byte, error) {
	var value any
	if err := utiljson.Unmarshal(text, &value); err != nil { // with integers that stay integers
		return nil, err
	}
	return direct.Marshal(value)
}

// watchFor bounds how long a watch is read that lacks events.
const watchFor = 10 * time.Second

// watch reads so many events of a watch, or fewer if the server ends it or sends no more. They are the
// answer's body.
func (p *player) watch(ctx context.Context, m message, at, accept string, s *step) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, watchFor)
	defer cancel()
	response, err := p.side.send(ctx, m, at, accept)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return parseFormat(response)
	}
	a := newAnswer(response)
	decoder := json.NewDecoder(response.Body)
	decoder.UseNumber()
	list := []any{}
	for len(list) < s.events {
		var event map[string]any
		err := decoder.Decode(&event)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		list = append(list, event)
		if s.untilGone && event["type"] == "DELETED" && p.isCurrent(event["object"]) {
			break
		}
	}
	a.At = time.Now()
	a.Body = map[string]any{"events": list}
	return a, nil
}

// isCurrent reports whether an object is the last one that a step has shown, in whatever version.
func (p *player) isCurrent(object any) bool {
	at := path{"metadata", "uid"}
	is, _ := get(object, at)
	want, _ := get(p.current, at)
	return is != nil && is == want
}

// headers compares what both servers must say in the headers of an answer.
func (c *comparison) headers(ours, judge map[string]string) {
	for _, name := range comparedHeaders {
		if a, b := ours[name], judge[name]; a != b {
			c.add(otherHeaders, name, a, b)
		}
	}
}
