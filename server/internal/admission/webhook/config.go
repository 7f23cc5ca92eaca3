package webhook

import (
	"errors"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/configfile"
	"github.com/levelwire/levelwire/server/internal/webhookclient"
)

// ParseConfig reads a WebhookAdmissionConfiguration and the kubeconfig file that it names,
// and returns the users as which the webhooks of the plugin are called: nil if it names no
// file.
func ParseConfig(data []byte) (*webhookclient.Credentials, error) {
	if err := configfile.CheckKind(data, "WebhookAdmissionConfiguration", "apiserver.config.k8s.io/v1"); err != nil {
		return nil, err
	}
	var config struct {
		metav1.TypeMeta    `json:",inline"`
		KubeConfigFile     string `json:"kubeConfigFile"`
		StaticManifestsDir string `json:"staticManifestsDir"`
	}
	switch err := yaml.UnmarshalStrict(data, &config); {
	case err != nil:
		return nil, err
	case config.StaticManifestsDir != "":
		return nil, errors.New("staticManifestsDir is not supported: create the webhook configurations in the API")
	case config.KubeConfigFile == "":
		return nil, nil
	case !filepath.IsAbs(config.KubeConfigFile):
		return nil, fmt.Errorf("kubeConfigFile must be an absolute path, and is %q", config.KubeConfigFile)
	}
	credentials, err := webhookclient.LoadCredentials(config.KubeConfigFile)
	if err != nil {
		return nil, fmt.Errorf("kubeConfigFile: %w", err)
	}
	return credentials, nil
}
