package upstream

import (
	"context"
	"errors"
	"fmt"
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
	}
	go func() { s.stopped <- generic.PrepareRun().RunWithContext(ctx) }()
	if err := s.waitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Config returns a new client configuration for the server: JSON, HTTP/2, no
// rate limit.
func (s *Server) Config() *clientrest.Config { return clientrest.CopyConfig(s.config) }

// Address is the host and port it listens on.
func (s *Server) Address() string { return s.address }

// Stop ends the server and waits for it; watches that are still open are cut
// after a second. What is stored stays. It may be called once.
func (s *Server) Stop() error {
	s.stop()
	return <-s.stopped
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
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.Host+"/readyz", nil)
		if err != nil {
			return err
		}
		if answer, err := client.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("upstream API server is not ready: %w", context.Cause(ctx))
		}
	}
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("upstream API server: %w", err)
	}
	return listener, nil
}

// build assembles the server around a socket.
func build(
	scheme *runtime.Scheme, opts Options, listener net.Listener,
) (*genericserver.GenericAPIServer, *options.SecureServingOptions, error) {
	codecs := serializer.NewCodecFactory(scheme)
	config := genericserver.NewConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.SkipOpenAPIInstallation = true
	config.OpenAPIV3Config = openAPI(scheme, resources())
	config.Authentication.Authenticator = authenticator.RequestFunc(asAdmin)
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.MergedResourceConfig = serverstorage.NewResourceConfig()
	// Also how long an orderly stop waits for watches, which never end.
	config.ShutdownWatchTerminationGracePeriod = time.Second

	serving := options.NewSecureServingOptions()
	serving.Listener = listener
	serving.BindPort = listener.Addr().(*net.TCPAddr).Port
	serving.ServerCert.CertDirectory = opts.CertDir
	serving.ServerCert.PairName = "apiserver"
	loopback := net.IPv4(127, 0, 0, 1)
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{loopback}); err != nil {
		return nil, nil, err
	}
	if err := serving.WithLoopback().ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return nil, nil, err
	}
	config.PublicAddress = loopback
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
