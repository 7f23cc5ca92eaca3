package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Env is what a check works with: a server, a namespace with nothing of
// another check in it, and everything that has been said so far. As with
// testing.T, the methods that fail or skip end the check's goroutine, and only
// that goroutine may call them.
type Env struct {
	ctx       context.Context
	server    *testedServer
	namespace string
	scenario  func(context.Context) (*recording, error) // shared by the stream guarantees

	verdict Verdict
	reason  string

	mu       sync.Mutex // guards what follows: writers run concurrently
	evidence []string
	made     map[string]bool // paths of objects that have to be deleted
	sequence int
}

// failf ends the check: the server does not keep the guarantee. If it is because of an error about
// time, among args, the guarantee is not decided.
func (e *Env) failf(format string, args ...any) {
	verdict := Fail
	for _, arg := range args {
		if err, ok := arg.(error); ok && undecided(err) {
			verdict = NotDecided
		}
	}
	e.end(verdict, format, args...)
}

// skipf ends the check: it cannot find out here whether the guarantee is kept.
func (e *Env) skipf(format string, args ...any) { e.end(Skip, format, args...) }

func (e *Env) end(v Verdict, format string, args ...any) {
	e.verdict, e.reason = v, fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// must ends the check if err is one.
func (e *Env) must(err error) {
	if err != nil {
		e.failf("%v", err)
	}
}

// keptExchanges is how much a failure shows of what was said before it.
const keptExchanges = 6

func (e *Env) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.evidence = append(e.evidence, fmt.Sprintf(format, args...))
	if extra := len(e.evidence) - keptExchanges; extra > 0 {
		e.evidence = e.evidence[extra:]
	}
}

// configMaps is the path of the collection that most checks use: the kind has
// no controllers, defaults or graceful deletion.
func (e *Env) configMaps() string { return "/api/v1/namespaces/" + e.namespace + "/configmaps" }

func (e *Env) pods() string { return "/api/v1/namespaces/" + e.namespace + "/pods" }

// unique returns a name that no other object of this check has.
func (e *Env) unique() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sequence++
	return "o" + strconv.Itoa(e.sequence)
}

// configMap is the body of a ConfigMap. Labels are "key=value".
func configMap(name, content string, labels ...string) string {
	body := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "labels": labelMap(labels)},
		"data":     map[string]string{"content": content},
	}
	encoded, _ := json.Marshal(body) // strings and maps of strings always encode
	return string(encoded)
}

func labelMap(labels []string) map[string]string {
	m := map[string]string{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		m[key] = value
	}
	return m
}

// create makes a ConfigMap and returns it as the server did.
func (e *Env) create(name string, labels ...string) object {
	made, err := e.post(e.ctx, e.configMaps(), name, configMap(name, "1", labels...))
	e.must(err)
	return made
}

// createSome makes n ConfigMaps named p0, p1, ... in this order.
func (e *Env) createSome(prefix string, n int, labels ...string) []object {
	var made []object
	for i := range n {
		made = append(made, e.create(prefix+strconv.Itoa(i), labels...))
	}
	return made
}

// update replaces a ConfigMap's content and labels, whatever they were.
func (e *Env) update(name, content string, labels ...string) object {
	written, err := e.put(e.ctx, e.configMaps()+"/"+name, configMap(name, content, labels...))
	e.must(err)
	return written
}

// delete deletes a ConfigMap.
func (e *Env) delete(name string) {
	path := e.configMaps() + "/" + name
	r := request{method: http.MethodDelete, path: path}
	answer := e.do(r)
	if answer.comesTooEarly() {
		e.must(busy(r, answer))
	}
	if answer.code != http.StatusOK {
		e.failf("DELETE of a ConfigMap that exists: %s", answer)
	}
	e.forget(path)
}

// createPod makes a pod that no scheduler takes, or skips the check if the
// server has no pods.
func (e *Env) createPod(name string, labels ...string) object {
	body := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "labels": labelMap(labels)},
		"spec": map[string]any{
			"schedulerName": "levelwire-verify", "restartPolicy": "Never", "automountServiceAccountToken": false,
			"containers": []map[string]any{{"name": "c", "image": "registry.k8s.io/pause:3.10"}},
		},
	}
	encoded, err := json.Marshal(body)
	e.must(err)
	deadline := time.Now().Add(e.limit())
	for {
		r := request{method: http.MethodPost, path: e.pods(), body: string(encoded)}
		answer := e.do(r)
		switch {
		case answer.comesTooEarly():
			e.must(busy(r, answer))
		case answer.code == http.StatusCreated:
			e.remember(e.pods() + "/" + name)
			var made object
			e.must(answer.decode(&made))
			return made
		case answer.code == http.StatusForbidden && strings.Contains(answer.String(), "serviceaccount") && time.Now().Before(deadline):
			e.sleep(100 * time.Millisecond) // the namespace's default account is still being made
		case answer.code == http.StatusNotFound || answer.code == http.StatusForbidden:
			e.skipf("pods cannot be created here: %s", answer)
		default:
			e.failf("POST of a pod: %s", answer)
		}
	}
}

// sleep pauses; the end of the check cuts it short.
func (e *Env) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.ctx.Done():
		e.must(e.ctx.Err())
	}
}

func (e *Env) remember(path string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made[path] = true
}

func (e *Env) forget(path string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.made, path)
}

// current returns the version of the collection now.
func (e *Env) current() uint64 {
	n, err := parseVersion(e.list("").Metadata.ResourceVersion)
	e.must(err)
	return n
}

// far is how much further than now a version is that will not come.
const far = 1_000_000

// future returns a version that the server will not reach during the check.
func (e *Env) future() string { return strconv.FormatUint(e.current()+far, 10) }
