package customresource_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object is any JSON object.
type object = map[string]any

// cluster is a server and an administrator's connection to it.
type cluster struct {
	t      testing.TB
	url    string
	client *http.Client
}

func start(t testing.TB, change ...func(*server.Config)) *cluster {
	t.Helper()
	s := levelwiretest.Start(t, change...)
	config, err := rest.TLSConfigFor(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	t.Cleanup(client.CloseIdleConnections)
	return &cluster{t: t, url: s.URL(), client: client}
}

// answer is what the server said.
type answer struct {
	t      testing.TB
	code   int
	header http.Header
	body   []byte
}

func (c *cluster) do(method, path string, body any, headers ...string) answer {
	c.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			c.t.Fatal(err)
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, reader)
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Set(name, value)
	}
	response, err := c.client.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{c.t, response.StatusCode, response.Header, got}
}

// multiplexed returns a client with one connection of HTTP/2, which is open.
func (c *cluster) multiplexed() *cluster {
	c.t.Helper()
	config := c.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	c.t.Cleanup(client.CloseIdleConnections)
	multiplexed := &cluster{t: c.t, url: c.url, client: client}
	multiplexed.get("/version").is(http.StatusOK)
	return multiplexed
}

// readAnswer is what read returns.
type readAnswer struct {
	code int
	err  error
}

// read is get for goroutines other than the test's.
func (c *cluster) read(path string) readAnswer {
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+path, http.NoBody)
	if err != nil {
		return readAnswer{err: err}
	}
	response, err := c.client.Do(request)
	if err != nil {
		return readAnswer{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return readAnswer{code: response.StatusCode, err: err}
}

func (c *cluster) get(path string, headers ...string) answer {
	c.t.Helper()
	return c.do(http.MethodGet, path, nil, headers...)
}

func (c *cluster) merge(path string, patch any) answer {
	c.t.Helper()
	return c.do(http.MethodPatch, path, patch, "Content-Type: application/merge-patch+json")
}

// is fails the test if the answer has another code.
func (a answer) is(code int) answer {
	a.t.Helper()
	if a.code != code {
		a.t.Fatalf("got %d, want %d: %s", a.code, code, a.body)
	}
	return a
}

// says fails the test if the message does not contain text.
func (a answer) says(text string) answer {
	a.t.Helper()
	if !strings.Contains(string(a.body), text) && !strings.Contains(a.message(), text) {
		a.t.Errorf("got %s, want it to say %s", a.body, text)
	}
	return a
}

func (a answer) message() string {
	message, _ := a.object()["message"].(string)
	return message
}

func (a answer) object() object {
	a.t.Helper()
	var o object
	if err := json.Unmarshal(a.body, &o); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return o
}

// at returns the value at a path of names and indexes: "spec.list.0.name".
func at(v any, path string) any {
	for _, name := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i := int(name[0] - '0')
			if i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// load reads a definition from testdata.
func load(t testing.TB, name string) object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var o object
	if err := yaml.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// define posts a definition from testdata.
func (c *cluster) define(name string) object {
	c.t.Helper()
	return c.do(http.MethodPost, definitions, load(c.t, name)).is(http.StatusCreated).object()
}

// redefine changes a definition. The server writes its status at the same
// time, which is a conflict like any other.
func (c *cluster) redefine(name string, change func(crd object)) answer {
	c.t.Helper()
	for {
		crd := c.get(definitions + "/" + name).is(http.StatusOK).object()
		change(crd)
		if put := c.do(http.MethodPut, definitions+"/"+name, crd); put.code != http.StatusConflict {
			return put
		}
	}
}

// stream is an open watch.
type stream struct {
	t      testing.TB
	reader *bufio.Reader
}

// watch opens a watch. It ends with the test.
func (c *cluster) watch(path string, headers ...string) *stream {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Set(name, value)
	}
	response, err := c.client.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		c.t.Fatalf("watch %s: %s", path, response.Status)
	}
	return &stream{c.t, bufio.NewReader(response.Body)}
}

// next returns the next event; nil at the end of the stream.
func (s *stream) next() object {
	s.t.Helper()
	line, err := s.reader.ReadBytes('\n')
	if err == io.EOF && len(line) == 0 {
		return nil
	}
	if err != nil {
		s.t.Fatalf("the watch broke: %v", err)
	}
	var event object
	if err := json.Unmarshal(line, &event); err != nil {
		s.t.Fatalf("%v: %s", err, line)
	}
	return event
}

// expect fails the test if the next event is another one, and returns its
// object.
func (s *stream) expect(kind, name string) object {
	s.t.Helper()
	event := s.next()
	if event["type"] != kind || at(event, "object.metadata.name") != name {
		s.t.Fatalf("got %v, want %s %s", event, kind, name)
	}
	return event["object"].(object)
}

// until reads a watch of definitions up to a state in which done says yes.
func (c *cluster) until(name string, done func(crd object) bool) object {
	c.t.Helper()
	s := c.watch(definitions + "?watch=1&fieldSelector=metadata.name%3D" + name)
	if c.get(definitions+"/"+name).code == http.StatusNotFound && done(nil) {
		return nil // it went before the watch began
	}
	for {
		event := s.next()
		if event == nil {
			c.t.Fatalf("the watch of %s ended", name)
		}
		crd := event["object"].(object)
		if event["type"] == "DELETED" {
			crd = nil
		}
		if done(crd) {
			return crd
		}
	}
}

// condition returns the reason and status of a condition: "NoConflicts True".
func condition(crd object, kind string) string {
	list, _ := at(crd, "status.conditions").([]any)
	for _, c := range list {
		if at(c, "type") == kind {
			return at(c, "reason").(string) + " " + at(c, "status").(string)
		}
	}
	return ""
}

func widget(name string, spec object) object {
	return object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": object{"name": name}, "spec": spec}
}

const widgets = "/apis/example.com/v1/namespaces/default/widgets"
