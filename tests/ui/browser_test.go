//go:build unix

package ui

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/levelwire/levelwire/internal/childprocess"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// patience is how long the page may take for anything.
const patience = 3 * time.Minute

// browser is a headless Chromium, driven by the DevTools protocol.
type browser struct {
	t    *testing.T
	conn *websocket.Conn

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	console []string
}

type answer struct {
	ID     int
	Result json.RawMessage
	Error  *struct{ Message string }
	Method string
	Params json.RawMessage
}

// findChromium returns the program, or skips the test.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && name != "" {
			return path
		}
	}
	t.Skip("no Chromium: apt-get install chromium-headless-shell, or set CHROMIUM")
	return ""
}

// startBrowser runs Chromium until the test ends.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	cmd := exec.Command(findChromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors", "--disable-dev-shm-usage", //nolint:noctx // It is killed at the end.
		"--remote-debugging-port=0", "--user-data-dir="+t.TempDir(), "--enable-precise-memory-info", "about:blank")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its processes end together
	output, err := cmd.StderrPipe()
	must(t, err)
	must(t, childprocess.Start(cmd))
	address := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if _, found, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
				address <- found
			}
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-read
		_ = cmd.Wait() // it was killed
	})
	select {
	case url := <-address:
		conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), url, nil)
		must(t, err)
		conn.SetReadLimit(64 << 20)
		b := &browser{t: t, conn: conn, waiting: map[int]chan answer{}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.receive()
		}()
		t.Cleanup(func() {
			_ = conn.Close()
			<-done
		})
		return b
	case <-time.After(patience):
		t.Fatal("Chromium does not start")
		return nil
	}
}

func (b *browser) receive() {
	for {
		var a answer
		if b.conn.ReadJSON(&a) != nil {
			return
		}
		b.mu.Lock()
		if a.Method == "Runtime.exceptionThrown" || a.Method == "Log.entryAdded" {
			b.console = append(b.console, string(a.Params))
		}
		if c := b.waiting[a.ID]; c != nil && a.ID != 0 {
			delete(b.waiting, a.ID)
			c <- a
		}
		b.mu.Unlock()
	}
}

// call has the browser do something.
func (b *browser) call(session, method string, params any) json.RawMessage {
	b.t.Helper()
	c := make(chan answer, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.waiting[id] = c
	err := b.conn.WriteJSON(map[string]any{"id": id, "sessionId": session, "method": method, "params": params})
	b.mu.Unlock()
	must(b.t, err)
	select {
	case a := <-c:
		if a.Error != nil {
			b.t.Fatalf("%s: %s", method, a.Error.Message)
		}
		return a.Result
	case <-time.After(patience):
		b.t.Fatalf("%s: the browser does not answer", method)
		return nil
	}
}

// tab is one page.
type tab struct {
	*browser
	session string
}

func (b *browser) open(url string) *tab {
	b.t.Helper()
	var context struct{ BrowserContextID string }
	must(b.t, json.Unmarshal(b.call("", "Target.createBrowserContext", map[string]any{}), &context)) // cookies of its own
	var target struct{ TargetID string }
	must(b.t, json.Unmarshal(b.call("", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": context.BrowserContextID}), &target))
	var attached struct{ SessionID string }
	must(b.t, json.Unmarshal(b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &attached))
	p := &tab{b, attached.SessionID}
	for _, domain := range []string{"Page", "Runtime", "Log", "Performance"} {
		p.do(domain+".enable", map[string]any{})
	}
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1280, "height": 740, "deviceScaleFactor": 1, "mobile": false})
	p.goTo(url)
	return p
}

func (p *tab) do(method string, params any) json.RawMessage {
	p.t.Helper()
	return p.call(p.session, method, params)
}

func (p *tab) goTo(url string) {
	p.t.Helper()
	p.do("Page.navigate", map[string]any{"url": url})
}

// eval evaluates an expression; a promise is awaited.
func (p *tab) eval(expression string, into any) {
	p.t.Helper()
	var result struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	must(p.t, json.Unmarshal(p.do("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}), &result))
	if result.ExceptionDetails != nil {
		p.t.Fatalf("%s: %s", expression, result.ExceptionDetails.Exception.Description)
	}
	if into != nil && len(result.Result.Value) > 0 {
		must(p.t, json.Unmarshal(result.Result.Value, into))
	}
}

// wait waits until an expression is true. The browser looks, in each frame.
func (p *tab) wait(what, expression string) {
	p.t.Helper()
	var ok bool
	p.eval(fmt.Sprintf(`new Promise((resolve) => {
		const begin = performance.now();
		const look = () => {
			let is = false;
			try { is = !!(%s); } catch { /* not yet */ }
			if (is || performance.now() - begin > %d) resolve(is);
			else setTimeout(look, 30);
		};
		look();
	})`, expression, (patience-10*time.Second).Milliseconds()), &ok)
	if !ok {
		var text string
		p.eval("document.body.innerText", &text)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Fatalf("%s: the page shows\n%s\nand the console\n%s", what, text, strings.Join(p.console[max(0, len(p.console)-10):], "\n"))
	}
}

func (p *tab) text(selector string) (text string) {
	p.t.Helper()
	p.eval(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector), &text)
	return text
}

// press presses the button with a text.
func (p *tab) press(label string) {
	p.t.Helper()
	p.wait("the button "+label, fmt.Sprintf("[...document.querySelectorAll('button')].some((b) => b.innerText === %q && !b.disabled)", label))
	p.eval(fmt.Sprintf("[...document.querySelectorAll('button')].find((b) => b.innerText === %q).click()", label), nil)
}

// picture writes what the page shows for the documentation, if that is wanted.
func (p *tab) picture(name string) {
	p.t.Helper()
	dir := os.Getenv("UI_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	must(p.t, json.Unmarshal(p.do("Page.captureScreenshot", map[string]any{"format": "png", "optimizeForSpeed": false}), &shot))
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	must(p.t, err)
	must(p.t, os.WriteFile(dir+"/"+name+".png", png, 0o644))
}

// checkAccessibility runs axe-core, if there is one.
func (p *tab) checkAccessibility(view string) {
	p.t.Helper()
	path := os.Getenv("AXE")
	if path == "" {
		p.t.Log("accessibility is not checked: AXE does not name an axe.min.js")
		return
	}
	source, err := os.ReadFile(path)
	must(p.t, err)
	p.eval(string(source)+"\n;0", nil)
	var problems []struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	p.eval("axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => ({ id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => ({ html: n.html.slice(0, 200), failureSummary: n.failureSummary })) })))", &problems)
	for _, problem := range problems {
		report := p.t.Logf
		if problem.Impact == "serious" || problem.Impact == "critical" {
			report = p.t.Errorf
		}
		report("%s: %s (%s): %s %+v", view, problem.ID, problem.Impact, problem.Help, problem.Nodes)
	}
}

// heap returns the bytes of the page's own memory.
func (p *tab) heap() (bytes float64) {
	p.t.Helper()
	p.do("HeapProfiler.collectGarbage", map[string]any{})
	var metrics struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	must(p.t, json.Unmarshal(p.do("Performance.getMetrics", map[string]any{}), &metrics))
	for _, m := range metrics.Metrics {
		if m.Name == "JSHeapUsedSize" {
			bytes = m.Value
		}
	}
	return bytes
}

// bytes returns how much the page has received from the API, without headers.
func (p *tab) bytes() (n int64) {
	p.t.Helper()
	p.eval("import('/ui/api.js').then((api) => api.received.bytes)", &n)
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
