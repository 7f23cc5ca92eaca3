package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// The paths of the page.
const (
	// Path is where the page is; its files are below it.
	Path = "/ui/"
	// SessionPath begins a session, by POST of {"link": SECRET}, and ends it, by DELETE. The
	// answer, {"key": KEY}, has what goes into Header from then on, beside the cookie.
	SessionPath = Path + "session"
	// LinkPath answers a POST of an authenticated user with a one-time link.
	LinkPath = Path + "link"
	// PacePath, followed by the name of a demonstration, sets its pace: PUT ?bytesPerSecond=N.
	PacePath = Path + "pace/"
)

//go:embed static
var files embed.FS

// policy is the content security policy: nothing but the page's own files, and requests to its
// own server, or to programs on the browser's machine that publish their informers.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' http://127.0.0.1:* http://localhost:*; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var errNoSession = errors.New("the session of the page has ended")

// UI serves the page. It is safe for concurrent use.
type UI struct {
	// Demonstrations are the watches whose pace the page sets.
	Demonstrations *Demonstrations

	logger   *slog.Logger
	files    map[string]file
	links    *secrets
	sessions *secrets
	key      string // a part of the tokens that Identify makes
}

type file struct {
	content     []byte
	contentType string
	tag         string
}

// New returns the page.
func New(logger *slog.Logger) (*UI, error) { return newUI(logger, time.Now) }

func newUI(logger *slog.Logger, now func() time.Time) (*UI, error) {
	u := &UI{
		Demonstrations: newDemonstrations(), logger: logger, files: map[string]file{},
		links: newSecrets(now), sessions: newSecrets(now), key: rand.Text() + ".",
	}
	err := fs.WalkDir(files, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		u.files[strings.TrimPrefix(name, "static/")] = file{content, typeOf(name), `"` + hex.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	return u, err
}

// typeOf returns the media type of a file. The types of the system are not asked: they may be
// wrong, and browsers are told to believe them.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}

// Serves reports whether a path is answered without credentials.
func Serves(path string) bool {
	return path == "/ui" || strings.HasPrefix(path, Path) && path != LinkPath && !strings.HasPrefix(path, PacePath)
}

// ServeHTTP answers requests for the paths that Serves accepts.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	switch {
	case r.URL.Path == SessionPath:
		u.session(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the files of the page are read with GET", http.StatusMethodNotAllowed)
	case r.URL.Path == "/ui":
		http.Redirect(w, r, Path, http.StatusMovedPermanently)
	default:
		u.file(w, r)
	}
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

func (u *UI) file(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Path)
	if name == "" {
		name = "index.html"
	}
	f, ok := u.files[name]
	if !ok {
		http.Error(w, "the page has no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Etag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", f.contentType)
	if r.Method == http.MethodGet {
		_, _ = w.Write(f.content) // fails only with the connection
	}
}

// maxSessionBody bounds the body of a request for a session.
const maxSessionBody = 4 << 10

// session begins or ends a session.
func (u *UI) session(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !trusted(r) {
		http.Error(w, "one-time links are for browsers on the machine of the server: sign in with a token or a client certificate", http.StatusForbidden)
		return
	}
	cookie := http.Cookie{Name: cookieName(r), Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1}
	switch r.Method {
	case http.MethodPost:
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			http.Error(w, "the body is JSON", http.StatusUnsupportedMediaType)
			return
		}
		var body struct{ Link string }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSessionBody)).Decode(&body); err != nil {
			http.Error(w, `the body is {"link": SECRET}`, http.StatusBadRequest)
			return
		}
		link, ok := u.links.find(body.Link, true)
		if !ok {
			http.Error(w, "this link has been used, or is too old: get another one", http.StatusUnauthorized)
			return
		}
		u.logger.Info("a one-time link was used to sign in to the page", "user", link.user.Name, "remote", r.RemoteAddr)
		cookie.Value, cookie.MaxAge = rand.Text(), int(link.session/time.Second)
		key := rand.Text()
		u.sessions.add(cookie.Value+"."+key, link.user, link.session, 0)
		http.SetCookie(w, &cookie)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"key": key}) // fails only with the connection
	case http.MethodDelete:
		if secret := sessionOf(r); secret != "" {
			u.sessions.find(secret, true)
		}
		http.SetCookie(w, &cookie)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "POST, DELETE")
		http.Error(w, "a session begins with POST, and ends with DELETE", http.StatusMethodNotAllowed)
	}
}

// ServeUser answers requests of an authenticated user for LinkPath and PacePath. It returns false
// for others.
func (u *UI) ServeUser(w http.ResponseWriter, r *http.Request, user auth.User) bool {
	switch name, pace := strings.CutPrefix(r.URL.Path, PacePath); {
	case r.URL.Path == LinkPath && r.Method == http.MethodPost && !user.In(auth.Unauthenticated):
		setHeaders(w.Header())
		if strings.Contains(r.Header.Get("Authorization"), tokenPrefix) {
			http.Error(w, "a session that a link began cannot make another link", http.StatusForbidden)
			return true
		}
		if r.Header.Get(authenticationv1.ImpersonateUserHeader) != "" {
			http.Error(w, "a link for an impersonated user is not made: its session would outlast the right to act as that user", http.StatusForbidden)
			return true
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"path": Path + "#link=" + u.links.issue(user, linkLifetime, lentLifetime)})
	case pace && r.Method == http.MethodPut:
		setHeaders(w.Header())
		u.Demonstrations.setPace(w, r, name, user)
	default:
		return false
	}
	return true
}
