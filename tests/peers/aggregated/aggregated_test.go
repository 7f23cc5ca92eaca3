package aggregated

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/compatibility"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

const testTimeout = 3 * time.Minute

// serve runs an aggregated server until the test ends, and returns its address. It knows
// Levelwire by a kubeconfig, as it would know kube-apiserver.
func serve(t *testing.T, kubeconfig string, storage rest.Storage) string {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, gv)
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	scheme.AddKnownTypes(gv, &Flunder{}, &FlunderList{})
	internal := gv
	internal.Version = runtime.APIVersionInternal
	scheme.AddKnownTypes(internal, &Flunder{}, &FlunderList{})
	scheme.AddUnversionedTypes(metav1.Unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	must(t, scheme.SetVersionPriority(gv))
	codecs := serializer.NewCodecFactory(scheme)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	config := genericserver.NewConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.SkipOpenAPIInstallation = true
	config.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(definitions, openapi.NewDefinitionNamer(scheme))
	config.MergedResourceConfig = serverstorage.NewResourceConfig()
	config.ShutdownWatchTerminationGracePeriod = time.Second
	serving := options.NewSecureServingOptions()
	serving.Listener, serving.BindPort = listener, listener.Addr().(*net.TCPAddr).Port
	serving.ServerCert.CertDirectory = "" // in memory, and no key in this folder
	must(t, serving.MaybeDefaultWithSelfSignedCerts("flunders.default.svc", nil, []net.IP{net.IPv4(127, 0, 0, 1)}))
	must(t, serving.WithLoopback().ApplyTo(&config.SecureServing, &config.LoopbackClientConfig))
	config.PublicAddress = net.IPv4(127, 0, 0, 1)
	authentication := options.NewDelegatingAuthenticationOptions()
	authentication.RemoteKubeConfigFile = kubeconfig
	must(t, authentication.ApplyTo(&config.Authentication, config.SecureServing, nil))
	authorization := options.NewDelegatingAuthorizationOptions()
	authorization.RemoteKubeConfigFile = kubeconfig
	must(t, authorization.ApplyTo(&config.Authorization))
	server, err := config.Complete(nil).New("flunders", genericserver.NewEmptyDelegate())
	must(t, err)
	info := genericserver.NewDefaultAPIGroupInfo(gv.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
	info.VersionedResourcesStorageMap[gv.Version] = map[string]rest.Storage{"flunders": storage}
	must(t, server.InstallAPIGroup(&info))
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- server.PrepareRun().RunWithContext(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// definitions describe a Flunder as an object with any members: only the tracking of
// field managers asks.
func definitions(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return map[string]common.OpenAPIDefinition{util.GetCanonicalTypeName(&Flunder{}): {Schema: spec.Schema{
		SchemaProps:      spec.SchemaProps{Type: []string{"object"}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}},
	}}}
}

// writeKubeconfig writes how the administrator reaches Levelwire.
func writeKubeconfig(t *testing.T, config *clientrest.Config) string {
	t.Helper()
	const name = "levelwire"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*c, path))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSampleServer: kubectl works with the kind of an aggregated server.
func TestSampleServer(t *testing.T) {
	kubectl := os.Getenv("KUBECTL")
	if kubectl == "" {
		var err error
		if kubectl, err = exec.LookPath("kubectl"); err != nil {
			t.Skip("there is no kubectl: put one into the PATH, or name it in KUBECTL")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	s := levelwiretest.Start(t)
	kubeconfig := writeKubeconfig(t, s.UserConfig("ada", "system:masters"))
	awaitAuthentication(ctx, t, s.Client(client.Options{}))
	storage := newFlunders()
	address := serve(t, kubeconfig, storage)
	host, port, err := net.SplitHostPort(address)
	must(t, err)
	run := func(input string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	expect := func(want, input string, args ...string) {
		t.Helper()
		if out, err := run(input, args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("kubectl %s: %v\n%s\nwant %s", strings.Join(args, " "), err, out, want)
		}
	}
	if out, err := run(strings.NewReplacer("HOST", host, "PORT", port).Replace(manifest), "create", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	expect("condition met", "", "wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1alpha1.wardle.example.com")
	expect("kube-system/metrics-server", "", "get", "apiservices")
	expect("fl", "", "api-resources", "--api-group", gv.Group)
	flunder := "apiVersion: wardle.example.com/v1alpha1\nkind: Flunder\nmetadata: {name: one}\nreference: two\n"
	expect("flunder.wardle.example.com/one created", flunder, "create", "--validate=false", "-f", "-")
	expect("one", "", "get", "fl")
	expect("reference: two", "", "get", "flunders", "one", "-o", "yaml")
	expect("deleted", "", "delete", "flunder", "one")
	// The aggregated server asks Levelwire again whether a user may do what it does.
	expect("created", "", "create", "clusterrole", "flunder-creator", "--verb=create", "--resource=flunders.wardle.example.com")
	expect("created", "", "create", "clusterrolebinding", "flunder-creator", "--clusterrole=flunder-creator", "--user=grace")
	expect("created", strings.ReplaceAll(flunder, "one", "three"), "create", "--as=grace", "--validate=false", "-f", "-")
	if out, err := run("", "get", "flunders", "--as=grace"); err == nil || !strings.Contains(out, "Forbidden") {
		t.Errorf("grace may list: %s", out)
	}
	storage.mu.Lock()
	users := slices.Clone(storage.users)
	storage.mu.Unlock()
	if !slices.Contains(users, "grace") {
		t.Errorf("the aggregated server saw %v", users)
	}
	watching(ctx, t, s, storage)
}

// watching opens a watch over Levelwire.
func watching(ctx context.Context, t *testing.T, s *levelwiretest.Server, storage *flunders) {
	t.Helper()
	api := client.Dynamic(s.Client(client.Options{}), gv.WithResource("flunders"))
	w, err := api.Watch(ctx, metav1.ListOptions{})
	must(t, err)
	defer w.Close()
	go func() {
		_ = storage.events.Action("ADDED", &Flunder{ObjectMeta: metav1.ObjectMeta{Name: "seen", Namespace: "default"}})
	}()
	event, err := w.Next()
	if err != nil || event.Object.GetName() != "seen" {
		t.Errorf("%+v, %v", event, err)
	}
}

// awaitAuthentication waits until what the aggregated server reads is published.
func awaitAuthentication(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	testwait.Stable(t, "the ConfigMap is published", func() (any, bool) {
		response, err := c.Raw(ctx, client.RawRequest{Path: "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"})
		if err != nil {
			return err, false
		}
		_ = response.Body.Close()
		return response.Status, response.StatusCode == http.StatusOK
	})
}

// The Service may have an endpoint on the loopback, as few may.
const manifest = `
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec: {ports: [{name: https, port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: metrics-server, namespace: kube-system, labels: {kubernetes.io/service-name: metrics-server}}
addressType: IPv4
ports: [{name: https, port: PORT}]
endpoints: [{addresses: [HOST]}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.wardle.example.com}
spec:
  group: wardle.example.com
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  insecureSkipTLSVerify: true
  service: {namespace: kube-system, name: metrics-server}
`
