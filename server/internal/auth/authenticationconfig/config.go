package authenticationconfig

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1alpha1 "k8s.io/apiserver/pkg/apis/apiserver/v1alpha1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	"github.com/levelwire/levelwire/server/internal/configfile"
)

// codecs read the file; a field that does not exist is an error.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}()

// apiVersions are those of the file.
var apiVersions = []string{apiserverv1.SchemeGroupVersion.String(), apiserverv1beta1.ConfigSchemeGroupVersion.String(), apiserverv1alpha1.ConfigSchemeGroupVersion.String()}

// parse reads and validates a file. It compiles the CEL expressions, and contacts nothing.
func parse(data []byte, compiler authenticationcel.Compiler, disallowedIssuers []string) (*apiserver.AuthenticationConfiguration, error) {
	if err := configfile.CheckKind(data, "AuthenticationConfiguration", apiVersions...); err != nil {
		return nil, err
	}
	object, err := runtime.Decode(codecs.UniversalDecoder(), data)
	if err != nil {
		return nil, err
	}
	config, ok := object.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("the file is of the kind %s, not AuthenticationConfiguration", object.GetObjectKind().GroupVersionKind().Kind)
	}
	return config, validation.ValidateAuthenticationConfiguration(compiler, config, disallowedIssuers).ToAggregate()
}

// anonymousOn returns whether a path is answered without credentials.
func anonymousOn(config *apiserver.AnonymousAuthConfig, path string) bool {
	if !config.Enabled {
		return false
	}
	return len(config.Conditions) == 0 || slices.Contains(config.Conditions, apiserver.AnonymousAuthCondition{Path: path})
}
