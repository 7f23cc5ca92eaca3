// Package kubeconfig loads configurations by the rules of kubectl: from the file of a
// flag, from the files in KUBECONFIG, from ~/.kube/config, or from the service account of
// the pod that the program runs in. client.Load makes a client of what it finds.
// docs/users/connect.md has the rules and what a kubeconfig may say.
package kubeconfig

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/homedir"
)

// Options says which kubeconfig to use, and what to use in place of what it says. The
// zero value is what kubectl does without flags.
type Options struct {
	// File is the one kubeconfig to read, as with --kubeconfig. It must exist.
	// Default: the files listed in the environment's KUBECONFIG, merged, those that
	// do not exist left out; without KUBECONFIG, ~/.kube/config; if none of them says
	// anything, the pod's service account.
	File string
	// Context is the name of a context. Default: the current context of the files.
	// With a context, the pod's service account is not used.
	Context string
	// Namespace replaces the context's. It only changes the namespace that is returned:
	// each endpoint of a client names its own.
	Namespace string
	// Impersonate says as whom the requests are made, in place of all that the context's
	// user says of that. Default: what the context's user says.
	Impersonate rest.ImpersonationConfig

	kubeconfigFlag *flag.Flag // another package's, whose value replaces File unless it is empty; nil: none
}

// AddFlags adds the flags -kubeconfig, -context, -namespace and -as, named as those of
// kubectl. A flag -kubeconfig that the set has already is used as it is: packages such as
// controller-runtime's config add one when they are imported.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	if o.kubeconfigFlag = flags.Lookup(kubeconfigFlag); o.kubeconfigFlag == nil {
		flags.StringVar(&o.File, kubeconfigFlag, o.File, "path of the kubeconfig file; default: KUBECONFIG, ~/.kube/config, or the pod's service account")
	}
	flags.StringVar(&o.Context, "context", o.Context, "context of the kubeconfig; default: its current context")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace; default: the context's")
	flags.StringVar(&o.Impersonate.UserName, "as", o.Impersonate.UserName, "user to impersonate")
}

// kubeconfigFlag is the name that all programs use.
const kubeconfigFlag = "kubeconfig"

// ErrNone means that there is nothing to load: no kubeconfig was found, and the program
// does not run in a pod.
var ErrNone = errors.New("no kubeconfig was found, and this is not a pod with a service account")

// inCluster reads the pod's service account. Tests replace it.
var inCluster = rest.InClusterConfig

// Config returns client-go's configuration of what the options choose, and the namespace
// of the context, or of the pod; "default" if neither says one. client.Load makes a
// client of it; programs call Config to change it, or to make other clients with it. It
// runs no exec plugin. The error matches ErrNone if there is no configuration anywhere.
func Config(from Options) (config *rest.Config, namespace string, err error) {
	if err := checkImpersonation(from.Impersonate); err != nil {
		return nil, "", err
	}
	if from.kubeconfigFlag != nil {
		from.File = cmp.Or(from.kubeconfigFlag.Value.String(), from.File)
	}
	rules := rulesFor(from)
	files, err := rules.Load()
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %w", describe(rules), err)
	}
	if err := check(files, from.Context); err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %w", describe(rules), err)
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: from.Context}
	overrides.Context.Namespace = from.Namespace
	loaded := clientcmd.NewNonInteractiveClientConfig(*files, from.Context, overrides, rules)
	config, err = loaded.ClientConfig()
	switch {
	case err == nil:
		from.impersonate(config)
		namespace, _, err = loaded.Namespace()
	case clientcmd.IsEmptyConfig(err) && from.File == "" && from.Context == "":
		config, namespace, err = fromPod(from, rules)
		if !errors.Is(err, ErrNone) || len(files.Contexts) == 0 {
			return config, namespace, err
		}
		err = noCurrentContext(files)
	case clientcmd.IsEmptyConfig(err):
		err = noCurrentContext(files)
	}
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %w", describe(rules), err)
	}
	return config, namespace, nil
}

// checkImpersonation refuses groups and the like that would be nobody's.
func checkImpersonation(as rest.ImpersonationConfig) error {
	if as.UserName == "" && (as.UID != "" || len(as.Groups) > 0 || len(as.Extra) > 0) {
		return errors.New("Options.Impersonate has no UserName: its UID, Groups and Extra are those of a user")
	}
	return nil
}

// impersonate replaces as whom the requests are made. The overrides of clientcmd would leave the user of the
// options the groups of the file's.
func (o Options) impersonate(config *rest.Config) {
	if o.Impersonate.UserName != "" {
		config.Impersonate = o.Impersonate
	}
}

// check refuses a context, that of the name or else the current one, that names what is not in
// the files. clientcmd would say of some that KUBERNETES_MASTER should be set.
func check(files *clientcmdapi.Config, name string) error {
	if name == "" {
		name = files.CurrentContext
	}
	if name == "" {
		return nil
	}
	chosen := files.Contexts[name]
	if chosen == nil {
		return fmt.Errorf("context %s does not exist: %s", name, choose(files))
	}
	if files.Clusters[chosen.Cluster] == nil {
		return fmt.Errorf("context %s: cluster %s does not exist", name, chosen.Cluster)
	}
	if chosen.AuthInfo != "" && files.AuthInfos[chosen.AuthInfo] == nil {
		return fmt.Errorf("context %s: user %s does not exist", name, chosen.AuthInfo)
	}
	return nil
}

func noCurrentContext(files *clientcmdapi.Config) error {
	return fmt.Errorf("no current-context: set one, or %s", choose(files))
}

// choose says which contexts there are.
func choose(files *clientcmdapi.Config) string {
	if len(files.Contexts) == 0 {
		return "name a file that has contexts, this one has none"
	}
	return fmt.Sprintf("choose one of the contexts (%s)", strings.Join(slices.Sorted(maps.Keys(files.Contexts)), ", "))
}

// rulesFor returns which files are read. The home directory is the one of now:
// clientcmd's default is that of the program's start.
func rulesFor(from Options) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = from.File
	rules.WarnIfAllMissing = false // the error says so
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		rules.Precedence = nil
		if home := homedir.HomeDir(); home != "" {
			rules.Precedence = []string{filepath.Join(home, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)}
		}
	}
	return rules
}

// describe names the files for errors.
func describe(rules *clientcmd.ClientConfigLoadingRules) string {
	if rules.ExplicitPath != "" {
		return rules.ExplicitPath
	}
	return strings.Join(rules.Precedence, ", ")
}

// namespaceFile is where the namespace of a pod is mounted.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func fromPod(from Options, rules *clientcmd.ClientConfigLoadingRules) (*rest.Config, string, error) {
	config, err := inCluster()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, "", fmt.Errorf("%w: name a file, set KUBECONFIG, or write %s", ErrNone, strings.Join(rules.Precedence, " or "))
	}
	if err != nil {
		return nil, "", fmt.Errorf("the pod's service account: %w", err)
	}
	from.impersonate(config)
	namespace := from.Namespace
	if namespace == "" {
		namespace = os.Getenv("POD_NAMESPACE")
	}
	if data, err := os.ReadFile(namespaceFile); namespace == "" && err == nil {
		namespace = strings.TrimSpace(string(data))
	}
	if namespace == "" {
		namespace = "default"
	}
	return config, namespace, nil
}
