package authorizationconfig

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1alpha1 "k8s.io/apiserver/pkg/apis/apiserver/v1alpha1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/levelwire/levelwire/server/internal/configfile"
)

// webhookType is the type of the authorizers that may be in a file more than once.
const webhookType = string(apiserver.TypeWebhook)

// apiVersions are those of the file.
var apiVersions = []string{apiserverv1.SchemeGroupVersion.String(), apiserverv1beta1.ConfigSchemeGroupVersion.String(), apiserverv1alpha1.ConfigSchemeGroupVersion.String()}

// Types returns the types of the authorizers in a file, each once, in their order. known
// are those that this server has. The file is validated; no webhook is asked.
func Types(data []byte, known []string) ([]string, error) {
	config, err := parse(data, known, authorizationcel.NewDefaultCompiler())
	if err != nil {
		return nil, err
	}
	return typesOf(config), nil
}

// typesOf returns the types of the authorizers, each once, in the order in which they are
// asked first.
func typesOf(config *apiserver.AuthorizationConfiguration) []string {
	var types []string
	for _, a := range config.Authorizers {
		if t := string(a.Type); !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// parse reads and validates a file. It compiles the CEL expressions. An error is one line.
func parse(data []byte, known []string, compiler authorizationcel.Compiler) (*apiserver.AuthorizationConfiguration, error) {
	if err := configfile.CheckKind(data, "AuthorizationConfiguration", apiVersions...); err != nil {
		return nil, err
	}
	config, err := load.LoadFromData(data)
	if err != nil {
		return nil, configfile.OneLine(err)
	}
	faults := validation.ValidateAuthorizationConfiguration(compiler, nil, config, sets.New(known...), sets.New(webhookType))
	for i, a := range config.Authorizers {
		if a.Webhook != nil && a.Webhook.ConnectionInfo.Type == apiserver.AuthorizationWebhookConnectionInfoTypeInCluster {
			faults = append(faults, field.NotSupported(field.NewPath("authorizers").Index(i).Child("connectionInfo", "type"),
				a.Webhook.ConnectionInfo.Type, []string{apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile}))
		}
	}
	if err := faults.ToAggregate(); err != nil {
		return nil, configfile.OneLine(err)
	}
	return config, nil
}

// checkTypes refuses a file with other types than those of the authorizers that the
// server has, apart from webhooks: the others need parts that are made at the start.
func checkTypes(config *apiserver.AuthorizationConfiguration, has []string) error {
	missing := sets.New(has...)
	for i, a := range config.Authorizers {
		switch t := string(a.Type); {
		case t == webhookType:
		case !slices.Contains(has, t):
			return fmt.Errorf("authorizers[%d].type: %s was not in the file when the server started: restart the server to add it", i, t)
		default:
			missing.Delete(t)
		}
	}
	if missing.Len() > 0 {
		return fmt.Errorf("authorizers: %s was in the file when the server started: restart the server to take it out", sets.List(missing)[0])
	}
	return nil
}
