package upstream

import (
	"context"
	"errors"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	crdoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// StartCustomResources starts the server of custom resources that a
// kube-apiserver contains, without the rest of it: no namespaces, no admission,
// and every client may do everything. It stores definitions as a
// kube-apiserver does, in version v1beta1, which is shorter.
func StartCustomResources(ctx context.Context, opts Options) (*Server, error) {
	listener, err := listen(ctx, opts.Address)
	if err != nil {
		return nil, err
	}
	generic, serving, err := buildCustomResources(opts, listener)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return run(ctx, generic, serving, listener)
}

func buildCustomResources(opts Options, listener *connections) (*genericserver.GenericAPIServer, *options.SecureServingOptions, error) {
	config := &genericserver.RecommendedConfig{Config: *newConfig(apiserver.Codecs)}
	config.MergedResourceConfig = apiserver.DefaultAPIResourceConfigSource()
	config.MergedResourceConfig.EnableVersions(apiextensionsv1.SchemeGroupVersion)
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme)
	config.OpenAPIConfig = genericserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.AdmissionControl = admission.NewChainHandler()
	serving, err := serve(&config.Config, opts, listener)
	if err != nil {
		return nil, nil, err
	}
	codec := apiserver.Codecs.LegacyCodec(apiextensionsv1beta1.SchemeGroupVersion, apiextensionsv1.SchemeGroupVersion)
	backend := storagebackend.NewDefaultConfig("/registry", codec)
	backend.Transport.ServerList = []string{opts.Etcd}
	backend.EncodeVersioner = runtime.NewMultiGroupVersioner(apiextensionsv1beta1.SchemeGroupVersion)
	etcd := options.NewEtcdOptions(backend)
	etcd.SkipHealthEndpoints = true
	if err := etcd.ApplyTo(&config.Config); err != nil {
		return nil, nil, err
	}
	complete := (&apiserver.Config{GenericConfig: config, ExtraConfig: apiserver.ExtraConfig{
		CRDRESTOptionsGetter: crdoptions.NewCRDRESTOptionsGetter(*etcd, nil, nil),
		MasterCount:          1,
	}}).Complete()
	server, err := complete.New(genericserver.NewEmptyDelegate())
	if err != nil {
		return nil, nil, err
	}
	server.GenericAPIServer.ShutdownTimeout = time.Second
	return server.GenericAPIServer, serving, nil
}
