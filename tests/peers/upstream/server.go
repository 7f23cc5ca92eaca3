package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	clientrest "k8s.io/client-go/rest"
)

// pollInterval is how often a server that starts is asked whether it is ready.
const pollInterval = 20 * time.Millisecond

// Options configures Start.
type Options struct {
	// Etcd is the URL of the etcd it stores in. Required.
	Etcd string
	// Address is where to listen, as host:port. Default: a free port of the
	// loopback interface.
	Address string
	// CertDir keeps the serving certificate, so that clients know the server
	// after a restart. Default: a new one, in memory only.
	CertDir string
	// Protobuf stores objects in protobuf, as a kube-apiserver does, and not in
	// JSON.
	Protobuf bool
}

// Server is a running API server.
type Server struct {
	config  *clientrest.Config
	address string
	stop    context.CancelFunc
	stopped chan error
	sockets *connections
}

// Start starts an API server and waits until it is ready. It runs until Stop or
// until ctx ends.
func Start(ctx context.Context, opts Options) (*Server, error) {
	listener, err := listen(ctx, opts.Address)
	if err != nil {
		return nil, err
	}
	scheme := newScheme()
	generic, serving, err := build(scheme, opts, listener)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return run(ctx, generic, serving, listener)
}

// run runs a server until Stop, or until ctx ends, and waits until it is ready.
func run(
	ctx context.Context, generic *genericserver.GenericAPIServer, serving *options.SecureServingOptions, listener *connections,
) (*Server, error) {
	certificate, err := servingCertificate(serving)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Server{
		address: listener.Addr().String(),
		config: &clientrest.Config{
			Host:            "https://" + listener.Addr().String(),
			TLSClientConfig: clientrest.TLSClientConfig{CAData: certificate},
			QPS:             -1, // no limit: the peer is not to be held back by its client
		},
		stop:    stop,
		stopped: make(chan error, 1),
		sockets: listener,
	}
	go func() { s.stopped <- generic.PrepareRun().RunWithContext(ctx) }()
	readyCtx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.waitReady(readyCtx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// readyTimeout is how long a server may take to be ready before it has failed.
const readyTimeout = time.Minute

// Config returns a new client configuration for the server: JSON, HTTP/2, no
// rate limit.
func (s *Server) Config() *clientrest.Config { return clientrest.CopyConfig(s.config) }

// Address is the host and port it listens on.
func (s *Server) Address() string { return s.address }

// Stop ends the server and waits for it; watches that are still open are cut
// after a second. What is stored stays. It may be called once.
func (s *Server) Stop() error {
	s.stop()
	err := <-s.stopped
	s.sockets.closeAll()
	return err
}

// waitReady asks until the server says that it is ready: its caches are filled.
func (s *Server) waitReady(ctx context.Context) error {
	client, err := clientrest.HTTPClientFor(s.config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	var reason error // of the last answer
	for {
		err := s.askReady(ctx, client)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			reason = err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("upstream API server is not ready: %w, last: %w", ctx.Err(), reason)
		}
	}
}

// askReady returns why the server is not ready.
func (s *Server) askReady(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.Host+"/readyz?verbose", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	reasons, err := io.ReadAll(answer.Body)
	err = errors.Join(err, answer.Body.Close())
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, reasons)
	}
	return err
}

func listen(ctx context.Context, address string) (*connections, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("upstream API server: %w", err)
	}
	return &connections{Listener: listener, open: map[net.Conn]struct{}{}}, nil
}

// build assembles the server around a socket.
func build(
	scheme *runtime.Scheme, opts Options, listener net.Listener,
) (*genericserver.GenericAPIServer, *options.SecureServingOptions, error) {
	codecs := serializer.NewCodecFactory(scheme)
	config := newConfig(codecs)
	config.SkipOpenAPIInstallation = true
	config.OpenAPIV3Config = openAPI(scheme, resources())
	config.MergedResourceConfig = serverstorage.NewResourceConfig()
	serving, err := serve(config, opts, listener)
	if err != nil {
		return nil, nil, err
	}
	if err := storageOptions(scheme, codecs, opts).ApplyTo(config); err != nil {
		return nil, nil, err
	}

	server, err := config.Complete(nil).New("upstream", genericserver.NewEmptyDelegate())
	if err != nil {
		return nil, nil, err
	}
	server.ShutdownTimeout = time.Second
	return server, serving, install(server, scheme, codecs, config.RESTOptionsGetter)
}

// newConfig lets every client do everything.
func newConfig(codecs serializer.CodecFactory) *genericserver.Config {
	config := genericserver.NewConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.Authentication.Authenticator = authenticator.RequestFunc(asAdmin)
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	// Also how long an orderly stop waits for watches, which never end.
	config.ShutdownWatchTerminationGracePeriod = time.Second
	return config
}

// serve has a server listen on a socket, with a certificate of its own.
func serve(config *genericserver.Config, opts Options, listener net.Listener) (*options.SecureServingOptions, error) {
	serving := options.NewSecureServingOptions()
	serving.Listener = listener
	serving.BindPort = listener.Addr().(*net.TCPAddr).Port
	serving.ServerCert.CertDirectory = opts.CertDir
	serving.ServerCert.PairName = "apiserver"
	loopback := net.IPv4(127, 0, 0, 1)
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{loopback}); err != nil {
		return nil, err
	}
	if err := serving.WithLoopback().ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return nil, err
	}
	config.PublicAddress = loopback
	return serving, nil
}

// asAdmin authenticates every request as one administrator. Users without a name
// would not do: their HTTP/2 connections are closed after each request, against abuse.
func asAdmin(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{User: &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}}, true, nil
}

// servingCertificate returns what clients verify the server by.
func servingCertificate(serving *options.SecureServingOptions) ([]byte, error) {
	if serving.ServerCert.GeneratedCert != nil {
		certificate, _ := serving.ServerCert.GeneratedCert.CurrentCertKeyContent()
		return certificate, nil
	}
	return os.ReadFile(serving.ServerCert.CertKey.CertFile)
}

// storageOptions is what a kube-apiserver uses: etcd3 behind a watch cache.
func storageOptions(scheme *runtime.Scheme, codecs serializer.CodecFactory, opts Options) *options.EtcdOptions {
	mediaType := runtime.ContentTypeJSON
	if opts.Protobuf {
		mediaType = runtime.ContentTypeProtobuf
	}
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	versions := schema.GroupVersions(scheme.PrioritizedVersionsAllGroups())
	codec := codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), versions, runtime.InternalGroupVersioner)
	backend := storagebackend.NewDefaultConfig("/registry", codec)
	backend.Transport.ServerList = []string{opts.Etcd}
	backend.EncodeVersioner = versions
	etcd := options.NewEtcdOptions(backend)
	etcd.DefaultStorageMediaType = mediaType
	etcd.SkipHealthEndpoints = true
	return etcd
}

func install(
	server *genericserver.GenericAPIServer, scheme *runtime.Scheme, codecs serializer.CodecFactory, getter generic.RESTOptionsGetter,
) error {
	groups := map[schema.GroupVersion]map[string]rest.Storage{}
	for _, r := range resources() {
		if groups[r.version] == nil {
			groups[r.version] = map[string]rest.Storage{}
		}
		if err := r.install(groups[r.version], scheme, getter); err != nil {
			return err
		}
	}
	for version, storages := range groups {
		info := genericserver.NewDefaultAPIGroupInfo(version.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
		info.VersionedResourcesStorageMap[version.Version] = storages
		var err error
		if version.Group == "" {
			err = server.InstallLegacyAPIGroup(genericserver.DefaultLegacyAPIPrefix, &info)
		} else {
			err = server.InstallAPIGroup(&info)
		}
		if err != nil {
			return fmt.Errorf("install %s: %w", version, err)
		}
	}
	return nil
}
