package levelwire_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/levelwire/levelwire"

// layers says, for each part of the tree, which parts of ours it may import.
// "x/..." covers x and everything below it. A folder not covered here fails
// the test: somebody has to decide where it belongs.
var layers = map[string][]string{
	".":            {},
	"internal/...": {"internal/..."},

	"storage":             {"internal/..."},
	"storage/memory":      {"storage", "internal/..."},
	"storage/etcd/...":    {"storage", "storage/etcd/...", "internal/..."},
	"storage/storagetest": {"storage", "internal/..."},

	"server/internal/h2/frame":               {},
	"server/internal/h2/listen":              {"internal/..."},
	"server/internal/h2":                     {"server/internal/h2/...", "internal/..."},
	"server/internal/gzipblock":              {},
	"server/internal/shard":                  {},
	"server/internal/auth":                   {"internal/..."},
	"server/internal/resource":               {"server/internal/resource/jsonscan", "server/internal/resource/structjson", "server/internal/resource/jsonproto", "internal/..."},
	"server/internal/resource/jsonscan":      {},
	"server/internal/resource/structjson":    {"server/internal/resource/jsonscan", "internal/..."},
	"server/internal/resource/jsonproto":     {"server/internal/resource/jsonscan", "server/internal/resource/structjson", "internal/..."},
	"server/internal/resource/mergestrategy": {},
	"server/internal/resource/columns":       {"server/internal/resource", "internal/..."},
	"server/internal/resource/builtin/...":   {"server/internal/resource/...", "internal/..."},
	"server/internal/watchcache/podtest":     {"storage/...", "server/internal/resource", "server/internal/watchcache/state"},
	"server/internal/watchcache/cachetest":   {"storage/...", "server/internal/watchcache/...", "internal/..."},
	"server/internal/watchcache/...":         {"storage", "server/internal/resource", "server/internal/shard", "server/internal/watchcache/...", "internal/..."},
	"server/internal/read":                   {"storage", "server/internal/status", "server/internal/resource", "server/internal/shard", "server/internal/watchcache", "internal/..."},
	"server/internal/registry/fieldmanager":  {"server/internal/resource/...", "internal/..."},
	"server/internal/registry/...":           {"storage", "server/internal/auth", "server/internal/status", "server/internal/resource/...", "server/internal/watchcache/...", "server/internal/registry/...", "internal/..."},
	"server/internal/admission":              {"storage", "server/internal/auth", "server/internal/resource", "server/internal/watchcache", "server/internal/registry/...", "internal/..."},
	"server/internal/serviceaccount":         {"storage", "server/internal/auth", "server/internal/resource", "server/internal/watchcache", "server/internal/registry/...", "internal/..."},
	"server/internal/customresource":         {"storage", "server/internal/resource/...", "server/internal/watchcache", "server/internal/registry", "internal/..."},
	"server/internal/openapi":                {"server/internal/resource/...", "internal/..."},
	"server/internal/status":                 {"storage", "server/internal/resource"},
	"server/internal/apiserver/...":          {"storage", "server/internal/...", "internal/..."},
	"server":                                 {"storage/...", "server/internal/...", "internal/..."},

	"server/internal/apiserver/request":        {"server/internal/auth", "server/internal/read", "server/internal/resource", "server/internal/status"},
	"server/internal/apiserver/encoding":       {"storage", "server/internal/apiserver/request", "server/internal/gzipblock", "server/internal/read", "server/internal/resource/...", "server/internal/status", "server/internal/watchcache/..."},
	"server/internal/apiserver/authentication": {"server/internal/auth", "server/internal/status"},
	"server/internal/apiserver/authorization":  {"server/internal/auth", "server/internal/resource", "server/internal/status"},
	"server/internal/apiserver/discovery":      {"server/internal/apiserver/request", "server/internal/apiserver/encoding", "server/internal/openapi", "server/internal/resource", "server/internal/status"},
	"server/internal/apiserver/watchstream":    {"server/internal/apiserver/request", "server/internal/apiserver/encoding", "server/internal/read", "server/internal/resource/...", "server/internal/status", "server/internal/watchcache/..."},
	"server/internal/apiserver/websocket":      {"server/internal/apiserver/request", "server/internal/apiserver/encoding", "server/internal/status"},
	"server/internal/apiserver/metrics":        {"server/internal/apiserver/request", "server/internal/resource", "server/internal/watchcache/...", "internal/..."},
	"server/internal/apiserver/health":         {"server/internal/apiserver/encoding", "server/internal/resource/...", "server/internal/status", "server/internal/watchcache/..."},
	"server/internal/apiserver/profiling":      {"server/internal/apiserver/encoding", "server/internal/status"},

	"client":                       {"client/internal/...", "internal/..."},
	"client/internal/codec":        {},
	"client/internal/wiretest":     {}, // for tests only
	"client/internal/...":          {"client/internal/...", "internal/..."},
	"client/cache":                 {"internal/..."},
	"client/diskcache":             {"internal/..."},
	"client/workqueue":             {"internal/..."},
	"client/reflector":             {"client", "client/cache", "internal/..."},
	"client/events":                {"client", "internal/..."},
	"client/informer":              {"client", "client/cache", "client/diskcache", "client/reflector", "client/workqueue", "internal/..."},
	"client/informer/informertest": {"client", "client/cache", "client/reflector", "client/informer"},
	"client/metrics":               {"client/informer", "client/reflector", "client/workqueue"},
	"client/leader":                {"client", "internal/..."},
	"client/controller":            {"client", "client/cache", "client/informer", "client/workqueue", "client/leader", "internal/..."},

	"components/controllermanager/...": {"client/...", "components/controllermanager/...", "internal/..."},
	"components/scheduler/...":         {"client/...", "internal/..."},
	"components/kubelet/...":           {"client/...", "internal/..."},
	"components/proxy/...":             {"client/...", "internal/..."},

	"levelwiretest":   {"server", "client/..."},
	"tests/...":       {}, // tests only
	"conformance/...": {"conformance/...", "internal/..."},
	"examples/...":    {"client/..."},
	"cmd/levelwire":   {"..."},
}

// exempt are parts of what is forbidden that are libraries of their own: the
// rules of custom resources are evaluated by them everywhere.
var exempt = []string{"k8s.io/apiserver/pkg/cel/...", "k8s.io/apiserver/pkg/apis/cel"}

// forbidden lists what must not be imported from elsewhere, and by whom.
// Only the product is checked: tests in these packages may use what they
// need, and the peers are compared against in modules of their own.
var forbidden = []struct {
	within, importing, because string
}{
	{"...", "k8s.io/apiserver/...", "it is the peer Levelwire is measured against"},
	{"...", "k8s.io/client-go/tools/cache/...", "it is the peer Levelwire is measured against"},
	{"...", "k8s.io/client-go/informers/...", "it is the peer Levelwire is measured against"},
	{"...", "k8s.io/client-go/util/workqueue", "it is the peer Levelwire is measured against"},
	{"...", "k8s.io/client-go/kubernetes", "client is our own client"},
	{"storage/...", "net/http", "storage serves no one over HTTP"},
	{"client/cache", "net/...", "stores and queues do no I/O"},
	{"client/workqueue", "net/...", "stores and queues do no I/O"},
	{"client/diskcache", "net/...", "a cache file knows nothing of servers"},
	{"client/controller", "net/...", "a controller works on informers and keys"},
	{"server/internal/watchcache/...", "net/...", "a cursor is read the same way, whatever sends its events"},
	{"server/internal/read", "net/...", "a read means the same over any transport"},
}

func TestImportsGoOneWay(t *testing.T) {
	for dir, files := range packages(t) {
		allowed, known := layerOf(dir)
		if !known {
			t.Errorf("%s is in no layer: say in architecture_test.go what it may import", dir)
			continue
		}
		for _, file := range files {
			if strings.HasSuffix(file.path, "_test.go") {
				continue
			}
			for _, spec := range file.ast.Imports {
				checkImport(t, dir, file.path, strings.Trim(spec.Path.Value, `"`), allowed)
			}
		}
	}
}

func checkImport(t *testing.T, dir, file, path string, allowed []string) {
	t.Helper()
	if ours, ok := strings.CutPrefix(path, module+"/"); ok {
		if !slices.ContainsFunc(allowed, func(pattern string) bool { return covers(pattern, ours) }) {
			t.Errorf("%s imports %s, which lies above it or beside it", file, ours)
		}
		return
	}
	if slices.ContainsFunc(exempt, func(pattern string) bool { return covers(pattern, path) }) {
		return
	}
	for _, rule := range forbidden {
		if covers(rule.within, dir) && covers(rule.importing, path) {
			t.Errorf("%s imports %s: %s", file, path, rule.because)
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	for dir, files := range packages(t) {
		var commented []string
		for _, file := range files {
			if file.ast.Doc != nil && !strings.HasSuffix(file.path, "_test.go") {
				commented = append(commented, file.path)
			}
		}
		if len(commented) != 1 {
			t.Errorf("%s has %d package comments (%v), want 1", dir, len(commented), commented)
		}
	}
}

func TestSourceFilesStayReadable(t *testing.T) {
	const most = 600
	for _, files := range packages(t) {
		for _, file := range files {
			if !strings.HasSuffix(file.path, "_test.go") && file.lines > most {
				t.Errorf("%s has %d lines; a file is one idea of at most %d", file.path, file.lines, most)
			}
		}
	}
}

// TestClientModulesStayLight: a program that uses the client does not resolve
// the server's dependencies. go.mod lists all modules that a build or a test of
// the module needs.
func TestClientModulesStayLight(t *testing.T) {
	for _, dir := range []string{"client", "adapters/clientgo"} {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, heavy := range []string{module + " ", "go.etcd.io/", "google.golang.org/grpc", "k8s.io/apiserver", "k8s.io/apiextensions-apiserver"} {
			if strings.Contains(string(content), "\t"+heavy) {
				t.Errorf("%s/go.mod requires %s", dir, heavy)
			}
		}
	}
}

type sourceFile struct {
	path  string
	ast   *ast.File
	lines int
}

// product lists the folders of the modules that are the product.
var product = []string{".", "client", "internal"}

// packages parses the Go files of the product's modules, by folder. Other
// modules and folders that the go tool ignores are left out.
func packages(t *testing.T) map[string][]sourceFile {
	t.Helper()
	found := map[string][]sourceFile{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipFolder(path, entry)
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		lines := fset.Position(parsed.FileEnd).Line
		found[dir] = append(found[dir], sourceFile{path, parsed, lines})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func skipFolder(path string, entry fs.DirEntry) error {
	name := entry.Name()
	if path != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "bin") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && !slices.Contains(product, path) {
		return filepath.SkipDir
	}
	return nil
}

// layerOf finds the most specific entry for a folder.
func layerOf(dir string) (allowed []string, known bool) {
	best := -1
	for pattern, imports := range layers {
		if covers(pattern, dir) && len(pattern) > best {
			best, allowed, known = len(pattern), imports, true
		}
	}
	return allowed, known
}

func covers(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return pattern == path
}
