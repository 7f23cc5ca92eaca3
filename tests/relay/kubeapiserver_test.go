package relay

import (
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	processes "github.com/levelwire/levelwire/tests/upstream/cluster"
)

var (
	only     = flag.String("relay.only", "", "names of the parts of TestKubeAPIServer to run, separated by commas; empty: all")
	binaries = flag.String("relay.binaries", "", "folder of levelwire, kubectl, kube-apiserver and etcd; without it TestKubeAPIServer is skipped")
	keep     = flag.String("relay.keep", "", "folder for the files and logs of the processes; empty: one that is removed")
)

// front is kube-apiserver, or a relay in front of it, as processes.
type front struct {
	t       *testing.T
	cluster *processes.Cluster
	url     string
	admin   string // an administrator's kubeconfig
}

// in returns the same for a subtest.
func (f front) in(t *testing.T) front {
	f.t = t
	return f
}

func (f front) host() string { return strings.TrimPrefix(f.url, "https://") }

// UserConfig implements served.
func (f front) UserConfig(name string, groups ...string) *rest.Config {
	f.t.Helper()
	config, err := f.cluster.UserConfig(f.url, name, groups...)
	if err != nil {
		f.t.Fatal(err)
	}
	return config
}

// Config implements served.
func (f front) Config() *rest.Config { return f.UserConfig("admin", "system:masters") }

// Client implements served.
func (f front) Client(opts client.Options) *client.Client {
	f.t.Helper()
	c, err := client.New(f.Config(), opts)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.CloseIdleConnections)
	return c
}

// startKubeAPIServer starts kube-apiserver.
func startKubeAPIServer(t *testing.T) front {
	t.Helper()
	if *binaries == "" {
		t.Skip("make test-relay builds kube-apiserver and runs this")
	}
	folder := t.TempDir()
	if *keep != "" {
		folder = filepath.Join(*keep, t.Name())
		// What a run before has left would be found by this one's server.
		if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	absolute := func(path string) string {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := processes.New("kube-apiserver", absolute(*binaries), absolute(folder))
	// There are no controllers, so no namespace has an account.
	c.KubeAPIServerFlags = []string{"--token-auth-file", absolute(tokenFile(t)), "--disable-admission-plugins=ServiceAccount", "--requestheader-client-ca-file="}
	t.Cleanup(c.Stop)
	if err := c.StartKubeAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Failure(); err != nil {
			t.Error(err)
		}
	})
	return front{t, c, c.URL(), c.AdminKubeconfig()}
}

// startRelay puts a relay in front of the server, or of the relay that was started last.
func (f front) startRelay(flags ...string) front {
	f.t.Helper()
	rights, err := filepath.Abs(filepath.Join(manifests, "rbac.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.cluster.StartRelay(f.t.Context(), rights, flags...); err != nil {
		f.t.Fatal(err)
	}
	return front{f.t, f.cluster, f.cluster.URL(), f.cluster.AdminKubeconfig()}
}

// TestKubeAPIServer holds relays in front of kube-apiserver with etcd and RBAC to what relays promise.
func TestKubeAPIServer(t *testing.T) {
	direct := startKubeAPIServer(t)
	levelwiretest.ApplyFiles(t, direct.Client(client.Options{}), "testdata/every-kind.yaml")
	one := direct.startRelay("--anonymous-auth")
	three := one.startRelay().startRelay()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, direct, one, three front)
	}{
		{"past", fillsFromPast}, // first, while etcd has all history
		{"answers", answersOfKubeAPIServer},
		{"writes", func(t *testing.T, direct, one, three front) { readYourWrites(t, one, direct, three) }},
		{"versions", func(t *testing.T, direct, one, three front) {
			moveWithVersion(t, direct, one, direct, three, direct, one)
		}},
		{"documents", func(t *testing.T, direct, one, three front) { compareDocuments(t, direct, one, three) }},
		{"watches", compareWatches},
		{"definitions", func(t *testing.T, direct, one, three front) { changeDefinitions(t, direct, one, three) }},
		{"verify", func(t *testing.T, _, one, _ front) { passEach(t, one.Config(), 100) }},
		{"verify-three", func(t *testing.T, _, _, three front) { passEach(t, three.Config(), 100) }},
		{"kubectl", kubectlOnBoth},
		{"histories", historiesOfKubeAPIServer},
		{"informers", informersOfKubeAPIServer},
	} {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), test.name) {
			continue
		}
		t.Run(test.name, func(t *testing.T) { test.run(t, direct.in(t), one.in(t), three.in(t)) })
	}
}

// answersOfKubeAPIServer compares the answers to users with different rights, for each kind and verb.
func answersOfKubeAPIServer(t *testing.T, direct, one, _ front) {
	admin := direct.Client(client.Options{})
	kinds := servedKinds(t, admin)
	users := matrixUsers(t, direct, one, kinds)
	mustCreate(t, client.For[*rbacv1.RoleBinding](admin).Namespace("a"), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "viewer"}, {Kind: "ServiceAccount", Namespace: "default", Name: "robot"}},
	})
	for name, user := range map[string]*rest.Config{
		"viewer": direct.UserConfig("viewer"), "robot": {BearerToken: serviceAccount(t, admin, "robot")}, "wrong token": {BearerToken: "wrong"}, "anonymous": {},
	} {
		users = append(users, matrixUser{name, userAt(t, direct, user), userAt(t, one, user)})
	}
	askAll(t, one, kinds, users, differsAtKubeAPIServer)
	compareColumns(t, kinds, admin, one.Client(client.Options{}))
}

// compareColumns: the columns of every kind are the same in all that they say, so that kubectl, which is shown a Table by the one and then
// one by the other, does not print the headers again.
func compareColumns(t *testing.T, kinds []*matrixKind, direct, through *client.Client) {
	compared := 0
	for _, k := range kinds {
		if !slices.Contains(k.Verbs, "list") {
			continue
		}
		// Any state is good enough for the relay to answer itself, where it does so at all.
		q := matrixRequest{method: http.MethodGet, path: k.path("") + "?resourceVersion=0", accept: asTable, shows: showsTable}
		var columns [2]string
		for i, c := range []*client.Client{direct, through} {
			a, err := q.send(t.Context(), c)
			if err != nil || a.code != http.StatusOK {
				t.Fatalf("%s: %+v, %v", q, a, err)
			}
			columns[i] = a.objects[0] // the rows follow
		}
		if columns[0] != columns[1] {
			t.Errorf("%s: the columns are %s\nwant %s", q, columns[1], columns[0])
		}
		compared++
	}
	if compared < 60 {
		t.Errorf("the columns of %d kinds were compared: that is too few to say anything", compared)
	}
}

// differsAtKubeAPIServer declares the requests that kube-apiserver answers in another way than a relay, or each time in another way
// (docs/operators/relay.md).
func differsAtKubeAPIServer(q matrixRequest) bool {
	alone, table := strings.Contains(q.accept, "as=PartialObjectMetadata"), strings.Contains(q.accept, "as=Table")
	path, query, _ := strings.Cut(q.path, "?")
	switch collection := path[strings.LastIndexByte(path, '/')+1:]; {
	case query == "watch=true&resourceVersion=none": // 500 at kube-apiserver, 400 through a relay
		return true
	case strings.HasPrefix(path, "/debug/"): // the relay's own
		return true
	case collection == "componentstatuses", collection == "selfsubjectrulesreviews": // in any order
		return true
	case strings.Contains(path, "/daemonsets"): // an annotation
		return alone || table
	case collection == "flowschemas", collection == "ipaddresses": // the order of rows, and a cell without a column
		return table
	}
	return false
}

// newNamespace returns the config maps of a namespace that is made for a test; without a name, of one that is called by chance.
func newNamespace(t *testing.T, s served, name string) client.Resource[*corev1.ConfigMap] {
	t.Helper()
	c := s.Client(client.Options{})
	if _, err := client.For[*corev1.Namespace](c).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, GenerateName: "any-"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return client.For[*corev1.ConfigMap](c).Namespace(name)
}
