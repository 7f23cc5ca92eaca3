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
	"storage/encryption":  {"storage", "internal/..."},
	"storage/epoch":       {"storage", "internal/..."},
	"storage/etcd/...":    {"storage", "storage/etcd/...", "internal/..."},
	"storage/storagetest": {"storage", "storage/memory", "internal/..."},

	"server/internal/h2/frame":               {},
	"server/internal/h2/listen":              {"internal/..."},
	"server/internal/h2":                     {"server/internal/h2/...", "server/internal/runqueue", "internal/..."},
	"server/internal/gzipblock":              {},
	"server/internal/shard":                  {},
	"server/internal/runqueue":               {},
	"server/internal/delta":                  {"server/internal/resource"},
	"server/internal/filewatch":              {"internal/..."},
	"server/internal/configfile":             {},
	"server/internal/auth":                   {"internal/..."},
	"server/internal/auth/...":               {"server/internal/auth", "server/internal/auth/tokencache", "server/internal/configfile", "internal/..."},
	"server/internal/resource":               {"server/internal/resource/structjson", "server/internal/resource/jsonproto", "internal/..."},
	"server/internal/resource/structjson":    {"internal/..."},
	"server/internal/resource/structequal":   {},
	"server/internal/resource/jsonproto":     {"server/internal/resource/structjson", "internal/..."},
	"server/internal/resource/mergestrategy": {},
	"server/internal/resource/columns":       {"server/internal/resource", "internal/..."},
	"server/internal/cel":                    {},
	"server/internal/patterntable":           {"internal/..."},
	"server/internal/resource/builtin/...":   {"server/internal/cel", "server/internal/patterntable", "server/internal/resource/...", "internal/..."},
	"server/internal/watchcache/podtest":     {"storage/...", "server/internal/resource", "server/internal/watchcache/state"},
	"server/internal/watchcache/cachetest":   {"storage/...", "server/internal/watchcache/...", "internal/..."},
	"server/internal/watchcache/...":         {"storage", "server/internal/resource", "server/internal/shard", "server/internal/watchcache/...", "internal/..."},
	"server/internal/read":                   {"storage", "server/internal/runqueue", "server/internal/status", "server/internal/resource", "server/internal/shard", "server/internal/watchcache", "internal/..."},
	"server/internal/registry/fieldmanager":  {"server/internal/resource/...", "internal/..."},
	"server/internal/registry/contention":    {"storage", "server/internal/runqueue"},
	"server/internal/registry/ownwrites":     {"storage", "server/internal/watchcache"},
	"server/internal/registry/objectmeta":    {"server/internal/resource"},
	"server/internal/registry/specstatus":    {"server/internal/resource", "server/internal/resource/structequal"},
	"server/internal/registry/reporter":      {},
	"server/internal/registry/...":           {"storage", "server/internal/runqueue", "server/internal/auth", "server/internal/status", "server/internal/resource/...", "server/internal/watchcache/...", "server/internal/registry/...", "internal/..."},
	"server/internal/podreference":           {},
	"server/internal/webhookclient":          {"server/internal/runqueue"},
	"server/internal/admission/...":          {"server/internal/admission/...", "server/internal/cel", "server/internal/configfile", "server/internal/openapi", "server/internal/podreference", "server/internal/runqueue", "server/internal/tracing", "server/internal/webhookclient", "storage", "server/internal/auth", "server/internal/resource", "server/internal/status", "server/internal/resource/builtin/podspec", "server/internal/watchcache", "server/internal/registry/...", "internal/..."},
	"server/internal/webhookauthorizer":      {"server/internal/auth", "server/internal/runqueue"},
	"server/internal/flowcontrol/fairqueue":  {},
	"server/internal/tracing":                {"storage", "server/internal/configfile"},
	"server/internal/flowcontrol/defaults":   {"server/internal/resource", "server/internal/registry", "internal/..."},
	"server/internal/flowcontrol":            {"storage", "server/internal/auth", "server/internal/resource", "server/internal/watchcache", "server/internal/registry", "server/internal/flowcontrol/...", "internal/..."},
	"server/internal/nodeauthorizer":         {"server/internal/auth", "server/internal/podreference", "server/internal/rbac", "server/internal/registry/...", "server/internal/resource", "server/internal/watchcache", "internal/..."},
	"server/internal/rbac/defaults":          {"server/internal/rbac", "server/internal/resource", "server/internal/registry", "internal/..."},
	"server/internal/rbac":                   {"storage", "server/internal/runqueue", "server/internal/auth", "server/internal/resource/...", "server/internal/watchcache", "server/internal/registry/...", "internal/..."},
	"server/internal/serviceaccount":         {"storage", "server/internal/auth", "server/internal/podreference", "server/internal/resource", "server/internal/watchcache", "server/internal/registry/...", "internal/..."},
	"server/internal/customresource":         {"storage", "server/internal/cel", "server/internal/patterntable", "server/internal/webhookclient", "server/internal/resource/...", "server/internal/watchcache", "server/internal/registry", "internal/..."},
	"server/internal/aggregation":            {"server/internal/auth", "server/internal/resource/...", "server/internal/watchcache", "server/internal/registry", "internal/..."},
	"server/internal/openapi":                {"server/internal/resource/...", "server/internal/gzipblock", "internal/..."},
	"server/internal/status":                 {"storage", "server/internal/resource"},
	"server/internal/ui":                     {"server/internal/auth"},
	"server/internal/apiserver/...":          {"storage", "server/internal/...", "internal/..."},
	"server/internal/relay":                  {"storage", "client", "client/reflector", "server/internal/...", "internal/..."}, // the one part of the server that is a client
	"server":                                 {"storage/...", "client/kubeconfig", "server/internal/...", "internal/..."},

	"server/internal/apiserver/request":         {"server/internal/auth", "server/internal/read", "server/internal/registry/reporter", "server/internal/resource", "server/internal/runqueue", "server/internal/status"},
	"server/internal/apiserver/encoding":        {"storage", "server/internal/apiserver/request", "server/internal/delta", "server/internal/gzipblock", "server/internal/read", "server/internal/resource/...", "server/internal/runqueue", "server/internal/status", "server/internal/watchcache/..."},
	"server/internal/apiserver/handlers":        {"server/internal/apiserver/authentication", "server/internal/apiserver/authorization", "server/internal/apiserver/componentstatus", "server/internal/apiserver/discovery", "server/internal/apiserver/encoding", "server/internal/apiserver/metrics", "server/internal/apiserver/request", "server/internal/apiserver/watchstream", "server/internal/read", "server/internal/registry/...", "server/internal/resource/...", "server/internal/status", "server/internal/watchcache", "internal/..."},
	"server/internal/apiserver/proxy":           {"server/internal/aggregation", "server/internal/apiserver/authentication", "server/internal/apiserver/encoding", "server/internal/apiserver/inflight", "server/internal/apiserver/request", "server/internal/auth", "server/internal/status", "server/internal/tracing", "server/internal/ui"},
	"server/internal/apiserver/audit":           {"server/internal/auth", "server/internal/configfile", "server/internal/registry/reporter", "server/internal/resource"},
	"server/internal/apiserver/inflight":        {"server/internal/auth", "server/internal/runqueue", "server/internal/flowcontrol/fairqueue"},
	"server/internal/apiserver/authentication":  {"server/internal/auth", "server/internal/status"},
	"server/internal/apiserver/authorization":   {"server/internal/auth", "server/internal/resource", "server/internal/status"},
	"server/internal/apiserver/reauthorization": {"server/internal/auth"},
	"server/internal/apiserver/componentstatus": {},
	"server/internal/apiserver/discovery":       {"server/internal/aggregation", "server/internal/apiserver/request", "server/internal/apiserver/encoding", "server/internal/openapi", "server/internal/resource", "server/internal/runqueue", "server/internal/status", "internal/..."},
	"server/internal/apiserver/inspect":         {"server/internal/apiserver/request", "server/internal/apiserver/encoding", "server/internal/apiserver/watchstream", "server/internal/auth", "server/internal/read", "server/internal/resource", "server/internal/status", "server/internal/watchcache/...", "storage", "internal/..."},
	"server/internal/apiserver/watchstream":     {"server/internal/auth", "server/internal/runqueue", "server/internal/tracing", "storage", "server/internal/apiserver/request", "server/internal/apiserver/reauthorization", "server/internal/apiserver/encoding", "server/internal/read", "server/internal/resource/...", "server/internal/status", "server/internal/watchcache/..."},
	"server/internal/apiserver/websocket":       {"server/internal/apiserver/request", "server/internal/apiserver/encoding", "server/internal/status"},
	"server/internal/apiserver/metrics":         {"server/internal/apiserver/request", "server/internal/resource", "server/internal/watchcache/...", "internal/..."},
	"server/internal/apiserver/health":          {"server/internal/apiserver/encoding", "server/internal/resource/...", "server/internal/status", "server/internal/watchcache/..."},
	"server/internal/apiserver/maintenance":     {"server/internal/apiserver/encoding", "server/internal/auth", "server/internal/status", "storage"},
	"server/internal/apiserver/profiling":       {"server/internal/apiserver/encoding", "server/internal/status"},

	"client/scheme":                {},
	"client":                       {"client/kubeconfig", "client/scheme", "client/internal/...", "internal/..."},
	"client/internal/codec":        {"client/scheme", "internal/jsonscan", "internal/wirefield"},
	"client/internal/gunzip":       {},
	"client/internal/wiretest":     {}, // for tests only
	"client/internal/...":          {"client/scheme", "client/internal/...", "internal/..."},
	"client/cache":                 {"client/internal/contain", "internal/..."},
	"client/workqueue":             {"client/internal/contain", "internal/..."},
	"client/reflector":             {"client", "client/cache", "client/internal/contain", "client/internal/pagetoken", "client/internal/transfer", "internal/..."},
	"client/kubeconfig":            {},
	"client/discovery":             {"client", "client/scheme", "client/reflector"},
	"client/events":                {"client", "internal/..."},
	"client/objectmeta":            {"client", "client/scheme"},
	"client/conditions":            {},
	"client/wait":                  {"client", "client/scheme"},
	"client/subresource":           {"client"},
	"client/podstream":             {"client"},
	"client/patch":                 {"client", "client/internal/mergepatch", "internal/..."},
	"client/informer":              {"client", "client/internal/...", "client/scheme", "client/cache", "client/reflector", "client/workqueue", "internal/..."},
	"client/informer/informertest": {"client", "client/cache", "client/reflector", "client/informer"},
	"client/informer/ondemand":     {"client", "client/scheme", "client/informer"},
	"client/cached":                {"client", "client/internal/deepcopy", "client/scheme", "client/cache", "client/informer", "internal/..."},
	"client/metrics":               {"client", "client/controller", "client/events", "client/informer", "client/leader", "client/reflector", "client/webhook", "client/workqueue"},
	"client/leader":                {"client", "client/internal/contain", "client/internal/ratelimit", "internal/..."},
	"client/webhook":               {"client", "client/internal/jsonpatch"},
	"client/health":                {},
	"client/debug":                 {"client/informer", "internal/..."},
	"client/tracing":               {"client", "client/controller", "client/informer"},
	"client/controller":            {"client", "client/internal/contain", "client/internal/deepcopy", "client/scheme", "client/cache", "client/informer", "client/workqueue", "client/leader", "internal/..."},

	"recording":          {},
	"recording/recorder": {"recording", "client/..."},
	"recording/replay":   {"recording", "storage", "internal/..."},

	"components/controllermanager/...": {"client/...", "components/controllermanager/...", "internal/..."},
	"components/scheduler/...":         {"client/...", "internal/..."},
	"components/kubelet/...":           {"client/...", "internal/..."},
	"components/proxy/...":             {"client/...", "internal/..."},
	"components/metrics":               {"client/...", "components/kubelet", "internal/..."},

	"levelwiretest":              {"server", "client/...", "internal/..."},
	"tests/workload":             {"client/..."},                             // for tests only
	"tests/...":                  {},                                         // tests only
	"tests/hunt":                 {"internal/..."},                           // for tests only
	"tests/differential":         {"internal/..."},                           // for tests only
	"tests/suites":               {"internal/..."},                           // for tests only
	"tests/upstream/...":         {"internal/...", "tests/upstream/..."},     // for tests only
	"tests/e2e":                  {"internal/...", "tests/upstream/cluster"}, // for tests only
	"tests/client/exampleserver": {"server", "client"},                       // for tests only
	"tests/client/tour":          {"client/..."},                             // for tests only
	"conformance/...":            {"conformance/...", "internal/..."},
	"examples/...":               {"client/..."},
	"cmd/levelwire/internal/...": {"..."},
	"cmd/levelwire":              {"..."},
}

// exempt are parts of what is forbidden that are libraries of their own, and why they
// are used.
var exempt = []struct{ path, because string }{
	{"k8s.io/apiserver/pkg/cel/...", "it evaluates the rules of custom resources everywhere"},
	{"k8s.io/apiserver/pkg/admission/plugin/cel", "the types of the variables that admission policies see"},
	{"k8s.io/apiserver/pkg/admission", "package plugin/cel imports it"},
	{"k8s.io/apiserver/pkg/apis/cel", "its limits belong to those rules"},
	{"k8s.io/apiserver/pkg/apis/apiserver/...", "the configuration files of kube-apiserver: types, defaults and validation"},
	{"k8s.io/apiserver/pkg/apis/audit/...", "the audit events and the policy, as Kubernetes defines them"},
	{"k8s.io/apiserver/pkg/audit/...", "it loads and evaluates audit policies and encodes events"},
	{"k8s.io/apiserver/plugin/pkg/audit/...", "the formats of the audit log, and truncation"},
	{"k8s.io/apiserver/pkg/admission/plugin/webhook/errors", "the errors of webhooks' refusals"},
	{"k8s.io/apiserver/pkg/authorization/authorizer", "the interface by which an audit policy sees a request"},
	{"k8s.io/apiserver/pkg/authentication/user", "the interface by which it sees the user"},
	{"k8s.io/apiserver/pkg/util/webhook", "it reads the kubeconfig of an audit webhook as kube-apiserver does"},
	{"k8s.io/apiserver/pkg/authorization/...", "the interface of the authorization webhook below, and its conditions"},
	{"k8s.io/client-go/kubernetes/typed/authorization/v1", "the authorization webhook names its interface; one package"},
	{"k8s.io/apiserver/plugin/pkg/authorizer/webhook/...", "the protocol of the authorization webhook: its versions, retries and cache"},
	{"k8s.io/apiserver/pkg/authentication/authenticator", "the interface of the two authenticators below"},
	{"k8s.io/apiserver/pkg/authentication/cel", "it compiles the claim mappings of the first"},
	{"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc", "JSON web tokens: their verification and mapping is not written anew"},
	{"k8s.io/apiserver/plugin/pkg/authenticator/token/webhook", "TokenReviews of another server, as kube-apiserver asks for them"},
	{"k8s.io/client-go/kubernetes/typed/authentication/v1", "the token webhook names its interface; one package"},
	{"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap", "the default FlowSchemas and PriorityLevelConfigurations, which must be those of kube-apiserver"},
	{"k8s.io/apiserver/pkg/storage/value", "the interface of the ciphers below"},
	{"k8s.io/apiserver/pkg/storage/value/encrypt/...", "encryption at rest: ciphers are not written anew, and etcd must hold the bytes that kube-apiserver reads"},
}

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
	{"client/internal/diskcache", "net/...", "a cache file knows nothing of servers"},
	{"client/controller", "net/...", "a controller works on informers and keys"},
	{"client", "go.opentelemetry.io/...", "programs without client/tracing do not link OpenTelemetry"},
	{"client/controller", "go.opentelemetry.io/...", "programs without client/tracing do not link OpenTelemetry"},
	{"client/informer", "go.opentelemetry.io/...", "programs without client/tracing do not link OpenTelemetry"},
	{"client/webhook", "go.opentelemetry.io/...", "programs without client/tracing do not link OpenTelemetry"},
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
	if isExempt(path) {
		return
	}
	for _, rule := range forbidden {
		if covers(rule.within, dir) && covers(rule.importing, path) {
			t.Errorf("%s imports %s: %s", file, path, rule.because)
		}
	}
}

// isExempt reports whether a package is one of exempt.
func isExempt(path string) bool {
	for _, library := range exempt {
		if covers(library.path, path) {
			return true
		}
	}
	return false
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
		length := len(strings.TrimSuffix(pattern, "...")) // a pattern for one folder is longer than one for all below its parent
		if covers(pattern, dir) && length > best {
			best, allowed, known = length, imports, true
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
