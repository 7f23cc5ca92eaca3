// Package pluginconfig reads AdmissionConfiguration files, which configure admission plugins.
package pluginconfig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/admission"
	"github.com/levelwire/levelwire/server/internal/admission/eventratelimit"
	"github.com/levelwire/levelwire/server/internal/admission/podrules"
	"github.com/levelwire/levelwire/server/internal/admission/podsecurity"
	"github.com/levelwire/levelwire/server/internal/admission/resourcequota"
	"github.com/levelwire/levelwire/server/internal/admission/webhook"
	"github.com/levelwire/levelwire/server/internal/configfile"
	"github.com/levelwire/levelwire/server/internal/webhookclient"
)

// Config is what an AdmissionConfiguration file says of the plugins.
type Config struct {
	PodSecurity podsecurity.Config
	Events      *eventratelimit.Config // nil: not configured
	Tolerations podrules.Tolerations
	// NodeSelectors are by namespace, as PodNodeSelector takes them.
	NodeSelectors map[string]labels.Set
	// Limited is what ResourceQuota lets be used only where a quota covers it.
	Limited resourcequota.Limited
	// The users as which webhooks are called; nil: without credentials.
	Mutating, Validating *webhookclient.Credentials
}

// Read reads an AdmissionConfiguration file. Without a file, and for plugins
// that are not in it, Kubernetes' defaults apply. A file that names a plugin which cannot
// be configured here is refused: its operator relies on it.
func Read(file string) (Config, error) {
	contents, err := readAdmissionConfiguration(file)
	if err != nil {
		return Config{}, err
	}
	var read Config
	for _, plugin := range []struct {
		name  string
		parse func(data []byte) error
	}{
		{admission.EventRateLimit, parseInto(&read.Events, eventratelimit.ParseConfig)},
		{admission.PodTolerationRestriction, parseInto(&read.Tolerations, podrules.ParseTolerations)},
		{admission.PodNodeSelector, parseInto(&read.NodeSelectors, podrules.ParseNodeSelectors)},
		{admission.ResourceQuota, parseInto(&read.Limited, resourcequota.ParseConfig)},
		{admission.MutatingAdmissionWebhook, parseInto(&read.Mutating, webhook.ParseConfig)},
		{admission.ValidatingAdmissionWebhook, parseInto(&read.Validating, webhook.ParseConfig)},
	} {
		if data, ok := contents[plugin.name]; ok {
			if err := plugin.parse(data); err != nil {
				return Config{}, configfile.OneLine(fmt.Errorf("%s: %w", plugin.name, err))
			}
		}
	}
	// Without a file, the plugin has defaults of its own.
	if read.PodSecurity, err = podsecurity.ParseConfig(contents[admission.PodSecurity]); err != nil {
		return Config{}, configfile.OneLine(fmt.Errorf("%s: %w", admission.PodSecurity, err))
	}
	return read, nil
}

// parseInto returns a function that stores what parse makes of a configuration.
func parseInto[T any](into *T, parse func([]byte) (T, error)) func([]byte) error {
	return func(data []byte) (err error) {
		*into, err = parse(data)
		return err
	}
}

// configurablePlugins are those that an AdmissionConfiguration may name.
var configurablePlugins = []string{
	admission.PodSecurity, admission.PodTolerationRestriction, admission.PodNodeSelector, admission.EventRateLimit, admission.ResourceQuota,
	admission.MutatingAdmissionWebhook, admission.ValidatingAdmissionWebhook,
}

// readAdmissionConfiguration returns the configurations of the plugins that the file
// names, by their names. No file names none.
func readAdmissionConfiguration(file string) (map[string][]byte, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := configfile.CheckKind(data, "AdmissionConfiguration", apiserverv1.SchemeGroupVersion.String()); err != nil {
		return nil, err
	}
	var parsed struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Plugins    []struct {
			Name string `json:"name"`
			// Path is that of the plugin's own file, seen from this one.
			Path          string          `json:"path"`
			Configuration json.RawMessage `json:"configuration"`
		} `json:"plugins"`
	}
	if err := yaml.UnmarshalStrict(data, &parsed); err != nil {
		return nil, configfile.OneLine(err)
	}
	contents := map[string][]byte{}
	for _, plugin := range parsed.Plugins {
		if !slices.Contains(configurablePlugins, plugin.Name) {
			return nil, fmt.Errorf("the admission plugin %q cannot be configured here: only %s can", plugin.Name, strings.Join(configurablePlugins, ", "))
		}
		contents[plugin.Name] = plugin.Configuration
		if len(plugin.Configuration) > 0 || plugin.Path == "" {
			continue
		}
		path := plugin.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(file), path)
		}
		if contents[plugin.Name], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return contents, nil
}
