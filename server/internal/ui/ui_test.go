package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
)

func newPage(t *testing.T, now func() time.Time) *UI {
	t.Helper()
	u, err := newUI(slog.New(slog.DiscardHandler), now)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// ask sends a request as a browser on the same machine does. Headers are "Name: value".
func ask(u *UI, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:4711"
	r.Header.Set(Header, "1")
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Remote" {
			r.RemoteAddr = value
		} else {
			r.Header.Set(name, value)
		}
		if value == "" {
			r.Header.Del(name)
		}
	}
	w := httptest.NewRecorder()
	u.ServeHTTP(w, r)
	return w
}

// TestFiles: each has its type and the headers that keep other sites out, and the page has
// no script or style that the policy would refuse.
func TestFiles(t *testing.T) {
	u := newPage(t, time.Now)
	for path, want := range map[string]string{
		"/ui/": "text/html; charset=utf-8", "/ui/main.js": "text/javascript; charset=utf-8", "/ui/style.css": "text/css; charset=utf-8", "/ui/icon.svg": "image/svg+xml",
	} {
		w := ask(u, http.MethodGet, path, "")
		h := w.Header()
		if w.Code != http.StatusOK || h.Get("Content-Type") != want || h.Get("X-Content-Type-Options") != "nosniff" || w.Body.Len() == 0 {
			t.Errorf("%s: %d, %v", path, w.Code, h)
		}
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy is %q", path, csp)
		}
		if again := ask(u, http.MethodGet, path, "", "If-None-Match: "+h.Get("Etag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s again: %d", path, again.Code)
		}
	}
	if w := ask(u, http.MethodGet, "/ui", ""); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "/ui/" {
		t.Errorf("/ui: %d %v", w.Code, w.Header())
	}
	for _, path := range []string{"/ui/nothing", "/ui/../doc.go", "/ui/static/main.js"} {
		if w := ask(u, http.MethodGet, path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := ask(u, http.MethodPut, "/ui/main.js", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", w.Code)
	}
	inline := regexp.MustCompile(`(?i)<script[^>]*>[^<]|<style|\son\w+=|\sstyle=|https?://[^w]`)
	if found := inline.Find(u.files["index.html"].content); found != nil {
		t.Errorf("the page has %q in it", found)
	}
	for name, f := range u.files {
		if strings.HasSuffix(name, ".js") && bytes.Contains(f.content, []byte("innerHTML")) {
			t.Errorf("%s sets HTML from text", name)
		}
	}
}

// TestLinkWorksOnce and in time, on this machine, for the page alone.
func TestLinkWorksOnce(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	u := newPage(t, func() time.Time { return now })
	user := auth.User{Name: "admin", Groups: []string{auth.Masters}}
	body := `{"link":"` + u.Link(user) + `"}`
	for _, refused := range [][]string{
		{Header + ": "}, {"Remote: 192.0.2.1:4711"}, {"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"}, {"Remote: nonsense"},
	} {
		if w := ask(u, http.MethodPost, SessionPath, body, refused...); w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: %d", refused, w.Code)
		}
	}
	for bad, want := range map[string]int{`{"link":"WRONG"}`: http.StatusUnauthorized, `{}`: http.StatusUnauthorized, `nonsense`: http.StatusBadRequest, `{"link":"` + strings.Repeat("x", 5000): http.StatusBadRequest} {
		if w := ask(u, http.MethodPost, SessionPath, bad); w.Code != want || len(w.Result().Cookies()) > 0 {
			t.Errorf("%.30s: %d", bad, w.Code)
		}
	}
	if w := ask(u, http.MethodPost, SessionPath, body, "Content-Type: text/plain"); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("as a form could send it: %d", w.Code)
	}
	w := ask(u, http.MethodPost, SessionPath, body)
	if w.Code != http.StatusOK || len(w.Result().Cookies()) != 1 {
		t.Fatalf("the link: %d %s", w.Code, w.Body)
	}
	begun := opened(t, w)
	cookie := begun.cookie
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" || !strings.HasPrefix(cookie.Name, "__Host-") {
		t.Errorf("the cookie: %+v", cookie)
	}
	if w := ask(u, http.MethodPost, SessionPath, body); w.Code != http.StatusUnauthorized {
		t.Errorf("the link a second time: %d", w.Code)
	}
	late := `{"link":"` + u.Link(user) + `"}`
	now = now.Add(linkLifetime + time.Second)
	if w := ask(u, http.MethodPost, SessionPath, late); w.Code != http.StatusUnauthorized {
		t.Errorf("a link that is too old: %d", w.Code)
	}
	if _, err := u.userOf(t, begun); err != nil {
		t.Errorf("the session: %v", err)
	}
	now = now.Add(sessionLifetime)
	if _, err := u.userOf(t, begun); !errors.Is(err, errNoSession) {
		t.Errorf("the session after its time: %v", err)
	}
}

// browser has a session.
type browser struct {
	cookie *http.Cookie
	key    string
}

// opened returns the session that an answer has begun.
func opened(t *testing.T, w *httptest.ResponseRecorder) browser {
	t.Helper()
	var body struct{ Key string }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Key == "" || len(w.Result().Cookies()) != 1 {
		t.Fatalf("no session: %d %s %v", w.Code, w.Body, err)
	}
	return browser{w.Result().Cookies()[0], body.Key}
}

// userOf returns the user of a request with a session.
func (u *UI) userOf(t *testing.T, session browser, change ...func(*http.Request)) (auth.User, error) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
	r.RemoteAddr = "[::1]:4711"
	r.Header.Set(Header, session.key)
	r.AddCookie(session.cookie)
	for _, f := range change {
		f(r)
	}
	u.Identify(r)
	identity, err := u.AuthenticateToken(t.Context(), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), nil)
	return identity.User, err
}

// TestSession: its cookie alone says nothing, and signing out ends it.
func TestSession(t *testing.T) {
	u := newPage(t, time.Now)
	begin := func(name string) browser {
		return opened(t, ask(u, http.MethodPost, SessionPath, `{"link":"`+u.Link(auth.User{Name: name})+`"}`))
	}
	begun, eve := begin("ann"), begin("eve")
	cookie := begun.cookie
	if user, err := u.userOf(t, begun); err != nil || user.Name != "ann" {
		t.Errorf("%+v, %v", user, err)
	}
	for name, change := range map[string]func(*http.Request){
		"without the header":     func(r *http.Request) { r.Header.Del(Header) },
		"from another site":      func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"from another machine":   func(r *http.Request) { r.RemoteAddr = "192.0.2.1:1" },
		"beside a token":         func(r *http.Request) { r.Header.Set("Authorization", "Bearer other") },
		"without the cookie":     func(r *http.Request) { r.Header.Del("Cookie") },
		"with another's content": func(r *http.Request) { r.Header.Set("Cookie", cookie.Name+"=guess") },
		"by a program on another port that was sent the cookie":  func(r *http.Request) { r.Header.Set(Header, "1") },
		"after a program on another port has set its own cookie": func(r *http.Request) { r.Header.Set("Cookie", eve.cookie.String()) },
		"of the server on another port":                          func(r *http.Request) { r.Host = "127.0.0.1:7443" },
		"as a token": func(r *http.Request) {
			r.Header.Del("Cookie")
			r.Header.Set("Authorization", "Bearer "+tokenPrefix+cookie.Value+"."+begun.key)
		},
	} {
		if user, err := u.userOf(t, begun, change); err == nil {
			t.Errorf("%s: %+v", name, user)
		}
	}
	if w := ask(u, http.MethodDelete, SessionPath, "", "Cookie: "+cookie.Name+"="+cookie.Value, Header+": "+begun.key); w.Code != http.StatusNoContent {
		t.Errorf("sign out: %d", w.Code)
	}
	if _, err := u.userOf(t, begun); !errors.Is(err, errNoSession) {
		t.Errorf("after signing out: %v", err)
	}
	for range maxSecrets + 50 {
		u.Link(auth.User{Name: "greedy"})
	}
	if n := len(u.links.open); n != maxSecrets {
		t.Errorf("%d links are open", n)
	}
}

// TestPacedWriter: a demonstration is as slow as its user says, and ends if it is stopped for
// as long as a client may not read.
func TestPacedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDemonstrations()
		ann, w := auth.User{Name: "ann"}, httptest.NewRecorder()
		p := d.Open(t.Context(), w, ann, "one")
		if p == nil || d.Open(t.Context(), w, ann, "one") != nil || d.Open(t.Context(), w, ann, "") != nil {
			t.Fatal("a name stands for one watch")
		}
		defer p.Close()
		set := func(user, rate string) int {
			answer := httptest.NewRecorder()
			d.setPace(answer, httptest.NewRequest(http.MethodPut, PacePath+"one?bytesPerSecond="+rate, nil), "one", auth.User{Name: user})
			return answer.Code
		}
		if bob, bad, ok := set("bob", "1"), set("ann", "-2"), set("ann", "1024"); bob != http.StatusNotFound || bad != http.StatusBadRequest || ok != http.StatusNoContent {
			t.Errorf("another user: %d, a bad pace: %d, a good one: %d", bob, bad, ok)
		}
		begin := time.Now()
		if n, err := p.Write(make([]byte, 5<<10)); n != 5<<10 || err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("%d, %v after %v", n, err, time.Since(begin))
		}
		set("ann", "0")
		begin = time.Now()
		if n, err := p.Write([]byte("x")); n != 0 || !errors.Is(err, errNotRead) || time.Since(begin) != 30*time.Second {
			t.Errorf("stopped: %d, %v after %v", n, err, time.Since(begin))
		}
		time.AfterFunc(3*time.Second, func() { set("ann", "-1") })
		begin = time.Now()
		if n, err := p.Write([]byte("x")); n != 1 || err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("stopped for a while: %d, %v after %v", n, err, time.Since(begin))
		}
	})
}

// TestLinkOfAUser lasts an hour, and its session makes no other.
func TestLinkOfAUser(t *testing.T) {
	u := newPage(t, time.Now)
	serve := func(method, path string, user auth.User) (bool, string) {
		w := httptest.NewRecorder()
		ok := u.ServeUser(w, httptest.NewRequest(method, path, nil), user)
		return ok, w.Body.String()
	}
	if ok, body := serve(http.MethodPost, LinkPath, auth.User{Name: "ann"}); !ok || !strings.Contains(body, `"/ui/#link=`) {
		t.Errorf("%v %s", ok, body)
	}
	_, body := serve(http.MethodPost, LinkPath, auth.User{Name: "ann"})
	_, secret, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(body), `"}`), "link=")
	session := opened(t, ask(u, http.MethodPost, SessionPath, `{"link":"`+secret+`"}`))
	cookie := session.cookie
	if cookie.MaxAge != 3600 {
		t.Errorf("the session lasts %d s", cookie.MaxAge)
	}
	r := httptest.NewRequest(http.MethodPost, LinkPath, nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set(Header, session.key)
	r.AddCookie(cookie)
	u.Identify(r)
	if w := httptest.NewRecorder(); !u.ServeUser(w, r, auth.User{Name: "ann"}) || w.Code != http.StatusForbidden {
		t.Errorf("a session makes a link: %d %s", w.Code, w.Body)
	}
	for _, not := range []bool{
		first(serve(http.MethodGet, LinkPath, auth.User{Name: "ann"})),
		first(serve(http.MethodPost, LinkPath, auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}})),
		first(serve(http.MethodPost, "/api/v1/pods", auth.User{Name: "ann"})),
	} {
		if not {
			t.Error("a link, or an answer, for a request that is not for one")
		}
	}
	if Serves(LinkPath) || Serves(PacePath+"x") || !Serves(SessionPath) || !Serves("/ui") || Serves("/uix") {
		t.Error("what is answered without credentials is not what it should be")
	}
}

func first(ok bool, _ string) bool { return ok }

// TestLinksOfOneUser do not end those of others, however many they are.
func TestLinksOfOneUser(t *testing.T) {
	u := newPage(t, time.Now)
	admin := u.Link(auth.User{Name: "admin"})
	for range 3 * maxSecrets {
		u.ServeUser(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, LinkPath, nil), auth.User{Name: "mallory"})
	}
	if n := len(u.links.open); n > maxSecrets {
		t.Errorf("%d links are open", n)
	}
	if w := ask(u, http.MethodPost, SessionPath, `{"link":"`+admin+`"}`); w.Code != http.StatusOK {
		t.Errorf("the link of another user: %d %s", w.Code, w.Body)
	}
}

// TestCookieNames: each port has its own.
func TestCookieNames(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1:6443": "6443", "[::1]:7443": "7443", "example.com": "443", "[::1]": "443", "": "443", "x:nonsense; a=b": "443", "x:99999": "443",
	} {
		if got := cookieName(&http.Request{Host: host}); got != cookiePrefix+want {
			t.Errorf("%q: %s", host, got)
		}
	}
}

// TestNoLinkByImpersonation: a session would outlast the right to act as its user, and would
// not ask for it.
func TestNoLinkByImpersonation(t *testing.T) {
	u := newPage(t, time.Now)
	r := httptest.NewRequest(http.MethodPost, LinkPath, nil)
	r.Header.Set("Impersonate-User", "ann")
	w := httptest.NewRecorder()
	if !u.ServeUser(w, r, auth.User{Name: "ann"}) || w.Code != http.StatusForbidden || len(u.links.open) > 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestRemoveCookie leaves all other cookies as they are.
func TestRemoveCookie(t *testing.T) {
	const cookieName = cookiePrefix + "6443"
	for from, want := range map[string]string{
		"":                                     "",
		cookieName + "=s":                      "",
		"a=b; " + cookieName + "=s; c=\"d e\"": "a=b; c=\"d e\"",
		"a=b;" + cookieName + "=s;" + cookieName + "=t": "a=b",
		" " + cookieName + " =s":                        "",
		"odd; x" + cookieName + "=s":                    "odd; x" + cookieName + "=s",
	} {
		h := http.Header{"Cookie": {from, cookieName + "=s"}}
		RemoveCookie(h)
		if got := strings.Join(h["Cookie"], "|"); got != want {
			t.Errorf("%q becomes %q, and not %q", from, got, want)
		}
	}
}
