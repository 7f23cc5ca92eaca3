//go:build unix

package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/debug"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/internal/childprocess"
)

// cluster is a `levelwire up` or `levelwire serve` with a user who may do nothing.
type cluster struct {
	t      *testing.T
	url    string
	link   string // once, for an administrator
	client *client.Client
}

const powerlessToken = "a-token-without-rights"

func startCluster(t *testing.T, command string) *cluster {
	t.Helper()
	dir := t.TempDir()
	program := os.Getenv("LEVELWIRE")
	if program == "" {
		program = filepath.Join(dir, "levelwire")
		out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/levelwire/levelwire/cmd/levelwire").CombinedOutput()
		if err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
	}
	tokens := filepath.Join(dir, "tokens.csv")
	must(t, os.WriteFile(tokens, []byte(powerlessToken+",powerless,1\n"), 0o600))
	cmd := exec.Command(program, command, "--storage=memory", "--secure-port=0", "--data-dir="+filepath.Join(dir, "data"), "--token-auth-file="+tokens) //nolint:noctx // It is interrupted at the end.
	last := map[string]string{"up": "Ctrl-C", "serve": "KUBECONFIG="}[command]
	ready := &readiness{last: last, is: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = ready, os.Stderr
	must(t, childprocess.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // how it ends is tested elsewhere
	})
	select {
	case <-ready.is:
	case <-time.After(patience):
		t.Fatalf("levelwire %s is not ready", command)
	}
	stdout := ready.text.String() // which is not written any more
	kubeconfig := regexp.MustCompile(`KUBECONFIG='?([^'\n]+)`).FindStringSubmatch(stdout)[1]
	c, err := client.FromKubeconfig(kubeconfig, client.Options{})
	must(t, err)
	server, path := strings.TrimSuffix(c.Host(), "/"), ""
	if command == "up" {
		path = regexp.MustCompile(`/ui/#link=\w+`).FindString(stdout)
	} else {
		path = newLink(t, c)
	}
	if path == "" {
		t.Fatalf("levelwire %s prints no link: %s", command, stdout)
	}
	return &cluster{t: t, url: server, link: server + path, client: c}
}

// newLink has the server make a one-time link, and returns its path.
func newLink(t *testing.T, c *client.Client) string {
	t.Helper()
	answer, err := c.Raw(t.Context(), client.RawRequest{Method: http.MethodPost, Path: "/ui/link"})
	must(t, err)
	defer answer.Body.Close()
	var link struct{ Path string }
	must(t, json.NewDecoder(answer.Body).Decode(&link))
	return link.Path
}

// readiness is the output of a server until it says that it is ready.
type readiness struct {
	last string // of what it says then
	text bytes.Buffer
	is   chan struct{} // closed then
	done bool
}

// Write implements io.Writer.
func (r *readiness) Write(p []byte) (int, error) {
	if r.done {
		return len(p), nil
	}
	r.text.Write(p)
	if _, after, ok := strings.Cut(r.text.String(), r.last); ok && strings.Contains(after, "\n") {
		r.done = true
		close(r.is)
	}
	return len(p), nil
}

// TestPage does what users of the page do, in one browser.
func TestPage(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a browser, and a minute")
	}
	b := startBrowser(t)
	c := startCluster(t, "up")
	step := func(name string, f func(t *testing.T)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			b.t, c.t = t, t
			f(t)
		})
		b.t, c.t = t, t
	}
	step("wrong token", func(t *testing.T) {
		p := b.open(c.url + "/ui/")
		p.wait("the form", "document.querySelector('#signin input')")
		p.checkAccessibility("sign in")
		p.signIn("wrong")
		p.wait("the refusal", "document.querySelector('[role=alert]').innerText.includes('not accepted')")
	})
	step("no rights", func(t *testing.T) {
		p := b.open(c.url + "/ui/#/objects/secrets")
		p.wait("the form", "document.querySelector('#signin input')")
		p.signIn(powerlessToken)
		p.wait("the refusal of secrets", "document.getElementById('status').innerText.startsWith('Not allowed')")
		if rows := p.text("#objects tbody"); rows != "" {
			t.Errorf("secrets are shown: %s", rows)
		}
		p.eval("location.hash = '#/flow'", nil)
		p.wait("the refusal of the flow", "document.getElementById('watchers') && document.getElementById('status').innerText.includes('/debug/listwatch/')")
		if rows := p.text("#watchers tbody"); rows != "" {
			t.Errorf("watches of others are shown: %s", rows)
		}
	})
	p := b.open(c.link)
	step("one-time link", func(t *testing.T) {
		p.wait("the user", "document.getElementById('who').innerText.includes('levelwire-admin')")
		again := b.open(c.link)
		again.wait("the refusal", "document.querySelector('[role=alert]').innerText.includes('has been used')")
	})
	step("flow", func(t *testing.T) { testFlow(t, c, p) })
	step("run", func(t *testing.T) { testRun(t, p) })
	step("objects", func(t *testing.T) { testObjects(t, c, p, 2000) })
	step("time", func(t *testing.T) { testTime(t, p) })
	step("informers", func(t *testing.T) { testInformers(t, c, p) })
	step("dark", func(t *testing.T) {
		p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}})
		for view, shown := range map[string]string{"flow": "#watchers tbody tr", "objects": "#objects tbody tr", "run": ".chain li", "time": "#state"} {
			p.eval(fmt.Sprintf("location.hash = '#/%s'", view), nil)
			p.wait(view, fmt.Sprintf("document.querySelector(%q)", shown))
			p.checkAccessibility(view + " in the dark")
		}
	})
	step("keyboard", func(t *testing.T) {
		p.eval("document.activeElement.blur(), dispatchEvent(new KeyboardEvent('keydown', { key: '1' }))", nil)
		p.eval("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '1', bubbles: true }))", nil)
		p.wait("the flow", "location.hash === '#/flow' && document.querySelector('#tabs a[aria-current]').innerText === 'Flow'")
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.console {
		if strings.Contains(line, "Content Security Policy") || strings.Contains(line, "exceptionDetails") {
			t.Errorf("the console: %s", line)
		}
	}
}

// TestLongList has the list of pods that UI_PODS says, on a server without controllers.
func TestLongList(t *testing.T) {
	pods, err := strconv.Atoi(os.Getenv("UI_PODS"))
	if err != nil {
		t.Skip("UI_PODS does not say how many pods the list has")
	}
	b := startBrowser(t)
	c := startCluster(t, "serve")
	p := b.open(c.link)
	p.wait("the user", "document.getElementById('who').innerText.includes('levelwire-admin')")
	testObjects(t, c, p, pods)
}

func (p *tab) signIn(token string) {
	p.t.Helper()
	p.eval(fmt.Sprintf("document.querySelector('#signin input').value = %q, document.querySelector('#signin button').click()", token), nil)
}

// testFlow has fifty watches besides the page's own, which is slowed: it alone lags. Then its
// connection is cut, and it resumes without a list.
func testFlow(t *testing.T, c *cluster, p *tab) {
	const others = 50
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	for range others {
		w, err := client.For[*corev1.ConfigMap](c.client).Watch(ctx, metav1.ListOptions{})
		must(t, err)
		reading.Go(func() {
			defer w.Close()
			for err == nil {
				_, err = w.Next()
			}
		})
	}
	p.eval("document.querySelector('.bar select').value = 'configmaps'", nil)
	p.press("Start a watch")
	p.press("Make changes")
	p.wait("events of the demonstration", "Number(document.querySelector('[data-demo=Events]').innerText) > 20")
	p.press("Slow")
	p.wait("the lag of the page's own watch", "document.querySelector('#watchers tr.late')?.innerText.includes('this page') && Number(document.querySelector('#watchers tr.late td').innerText) > 20")
	p.wait("that no other watch lags", "[...document.querySelectorAll('#watchers tr.late')].every((r) => r.innerText.includes('this page'))")
	p.eval("document.querySelector('.bar select').value = 'configmaps', scrollTo(0, 0)", nil)
	p.wait("the strip", "document.querySelectorAll('svg.strip rect').length > 50 && document.querySelector('svg.strip g.late')")
	p.wait("the charts", "[...document.querySelectorAll('.chart canvas')].length === 2 && [...document.querySelectorAll('.chart .plot')].every((n) => / now$/.test(n.ariaLabel))")
	p.wait("the lag in the chart", "/behind: [\\d.]+ (s|ms|min) now/.test(document.querySelector('.chart.late .plot').ariaLabel)")
	p.checkAccessibility("flow")
	p.picture("flow")
	p.press("Cut")
	p.wait("the resume", "Number(document.querySelector('[data-demo=Resumes]').innerText) === 1 && document.querySelector('[aria-label=\"What happened to the client\"]').innerText.includes('first event')")
	if lists := p.text("[data-demo=Lists]"); lists != "1" {
		t.Errorf("%s lists, want the first alone", lists)
	}
	p.press("Make changes") // no more of them
}

func testRun(t *testing.T, p *tab) {
	p.eval("location.hash = '#/run'", nil)
	p.press("Create a ReplicaSet")
	p.wait("the whole chain", "document.querySelectorAll('.chain li.lit').length === 6")
	p.checkAccessibility("run")
	p.picture("run")
	if seen := p.text("#seen tbody"); !strings.Contains(seen, "Running") || !strings.Contains(seen, "endpointslices") {
		t.Errorf("what was seen: %s", seen)
	}
}

// testObjects has a list that is longer than the page shows.
func testObjects(t *testing.T, c *cluster, p *tab, pods int) {
	c.createPods(pods)
	p.eval("location.hash = '#/objects/pods/many'", nil)
	begin := time.Now()
	total := fmt.Sprintf("of %s,", comma(pods))
	p.wait("the list", fmt.Sprintf("document.getElementById('facts').innerText.includes(%q) && document.querySelectorAll('#objects tbody tr').length > 5", total))
	opened := time.Since(begin)
	var rows int
	p.eval("document.querySelectorAll('#objects tbody tr').length", &rows)
	if rows > 100 {
		t.Errorf("%d rows are in the page", rows)
	}
	p.checkAccessibility("objects")
	p.picture("objects")
	testChanges(t, c, p, pods)
	last := fmt.Sprintf("pod-%07d", pods-1)
	begin = time.Now()
	p.eval("document.querySelector('[role=region]').scrollTop = 1e9", nil)
	p.wait("the end of the list", fmt.Sprintf("document.getElementById('objects').innerText.includes(%q)", last))
	scrolled := time.Since(begin)
	begin = time.Now()
	p.eval(`{ const s = [...document.querySelectorAll('.bar select')].at(-1); s.value = '["created",true]'; s.dispatchEvent(new Event('change')); }`, nil)
	p.wait("the newest first", fmt.Sprintf("document.getElementById('facts').innerText.startsWith('1 to ') && Number(document.querySelector('#objects tbody th').innerText.slice(4)) >= %d", pods-100))
	sorted := time.Since(begin)
	begin = time.Now()
	p.eval(`{ const i = document.querySelector('[placeholder="app=web"]'); i.value = 'hundred=7'; i.dispatchEvent(new Event('change')); }`, nil)
	p.wait("the filtered list", fmt.Sprintf("document.getElementById('facts').innerText.includes('of %s,')", comma(min(100, max(pods-700, 0)))))
	heap := p.heap()
	if heap > 100e6 {
		t.Errorf("the page takes %.0f MB", heap/1e6)
	}
	t.Logf("%d pods: opened in %v, scrolled to the end in %v, sorted in %v, filtered in %v; the page's memory: %.1f MB", pods, opened, scrolled, sorted, time.Since(begin), heap/1e6)
	p.eval("document.querySelector('#objects tbody a').click()", nil)
	p.wait("the object", "document.querySelector('pre').innerText.includes('kind: Pod') && document.querySelectorAll('#versions tbody tr').length > 0")
	p.checkAccessibility("object")
}

// testChanges has many changes of pods that are not seen, and then of those that are. Only the
// latter are sent, and each row twice a second at most.
func testChanges(t *testing.T, c *cluster, p *tab, pods int) {
	const changes = 3000
	measure := func(what string, of func(i int) int) (bytes int64, seconds float64) {
		before, begin := p.bytes(), time.Now()
		c.changePods(changes, of)
		reason := fmt.Sprintf("Marked%d", before)
		c.patchPod(0, `{"status":{"reason":"`+reason+`"}}`, "status")
		p.wait("a change of the first row", fmt.Sprintf("document.querySelector('#objects tbody tr').innerText.includes(%q)", reason))
		bytes, seconds = p.bytes()-before, time.Since(begin).Seconds()
		t.Logf("%d pods: %.0f changes a second of pods that %s: %.1f kB a second", pods, changes/seconds, what, float64(bytes)/seconds/1e3)
		return bytes, seconds
	}
	if bytes, _ := measure("are not seen", func(i int) int { return pods/2 + i%(pods/2) }); bytes > 10e3 {
		t.Errorf("%d changes of pods that are not seen: the page got %d bytes", changes, bytes)
	}
	if bytes, seconds := measure("are seen", func(i int) int { return i % 5 }); float64(bytes) > 200e3*max(seconds, 1) {
		t.Errorf("%d changes of pods that are seen: the page got %d bytes in %.1f s", changes, bytes, seconds)
	}
}

// createPods creates pods that no scheduler looks at.
func (c *cluster) createPods(n int) {
	c.t.Helper()
	_, err := client.For[*corev1.Namespace](c.client).Create(c.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "many"}}, metav1.CreateOptions{})
	must(c.t, err)
	c.inParallel(n, func(i int) error {
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: fmt.Sprintf("pod-%07d", i), Labels: map[string]string{"hundred": fmt.Sprint(i / 100)}},
			Spec:       corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "main", Image: "example.com/nothing:1"}}},
		}
		_, err := c.pods().Create(c.t.Context(), &pod, metav1.CreateOptions{})
		return err
	})
}

// changePods changes pods, the i-th time the one with the number that of returns.
func (c *cluster) changePods(changes int, of func(i int) int) {
	c.t.Helper()
	c.inParallel(changes, func(i int) error {
		_, err := c.pods().Patch(c.t.Context(), fmt.Sprintf("pod-%07d", of(i)), types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"change":"%d"}}}`, i), metav1.PatchOptions{})
		return err
	})
}

func (c *cluster) patchPod(i int, patch string, subresources ...string) {
	c.t.Helper()
	_, err := c.pods().Patch(c.t.Context(), fmt.Sprintf("pod-%07d", i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	must(c.t, err)
}

func (c *cluster) pods() client.Resource[*corev1.Pod] {
	return client.For[*corev1.Pod](c.client).Namespace("many")
}

// inParallel calls f with all numbers below n.
func (c *cluster) inParallel(n int, f func(i int) error) {
	c.t.Helper()
	const workers = 16
	var working sync.WaitGroup
	failed := make(chan error, workers)
	for worker := range workers {
		working.Go(func() {
			for i := worker; i < n; i += workers {
				if err := f(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	working.Wait()
	close(failed)
	for err := range failed {
		c.t.Fatal(err)
	}
}

func testTime(t *testing.T, p *tab) {
	p.eval("location.hash = '#/time/replicasets.apps'", nil)
	p.wait("the state", "document.querySelector('#state tbody tr') && document.querySelector('#changes tbody tr')")
	p.checkAccessibility("time")
	p.picture("time")
	p.eval("{ const s = document.querySelectorAll('input[type=range]')[0]; s.value = 0; s.dispatchEvent(new Event('input')); }", nil)
	p.wait("the state before the first change", "document.querySelector('#state caption').innerText.startsWith('0 objects')")
}

// testInformers has a program with an informer, here the test.
func testInformers(t *testing.T, c *cluster, p *tab) {
	factory := informer.NewFactory(c.client, informer.Options{})
	nodes := informer.For[*corev1.Node](factory, informer.ListOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx)
	<-nodes.Synced()
	program := httptest.NewServer(debug.Informers("the test", factory))
	defer program.Close()
	p.eval("location.hash = '#/informers'", nil)
	p.wait("the form", "document.querySelector('input[type=url]')")
	p.eval(fmt.Sprintf("document.querySelector('input[type=url]').value = %q", program.URL), nil)
	p.press("Show")
	p.wait("the informer", "document.getElementById('program').innerText.startsWith('the test') && document.querySelector('#informers tbody tr').innerText.includes('synced')")
	p.checkAccessibility("informers")
}

// comma writes a number as the page does.
func comma(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
